# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which compiler an image for a board is built with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.harness.zephyr.compilers import compiler_for

VARIANT = "ZEPHYR_TOOLCHAIN_VARIANT"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, with both compilers, on a machine without Zephyr's SDK."""
    folder = tmp_path / "usr" / "bin"
    folder.mkdir(parents=True)
    for name in ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"):
        (folder / name).write_text('#!/bin/sh\necho "/lib/$1/$2/libgcc.a"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return folder


def test_arm(programs: Path) -> None:
    found = compiler_for("nucleo_f446re", {})
    assert found == {VARIANT: "gnuarmemb", "GNUARMEMB_TOOLCHAIN_PATH": str(programs.parent)}
    assert compiler_for("nucleo_f446re", {VARIANT: "gnuarmemb"}) == {}


@pytest.mark.parametrize("chosen", [{}, {VARIANT: "gnuarmemb"}])
def test_riscv(programs: Path, chosen: dict[str, str]) -> None:
    """Also where Arm's compiler was chosen, which cannot do it; flags of the user stay."""
    found = compiler_for("qemu_riscv32/qemu_virt_riscv32", {**chosen, "EXTRA_LDFLAGS": "-Lmine"})
    assert found == {
        VARIANT: "cross-compile",
        "CROSS_COMPILE": f"{programs}/riscv64-unknown-elf-",
        "EXTRA_LDFLAGS": "-Lmine -L/lib/-march=rv32imafc/-mabi=ilp32f",
    }


@pytest.mark.parametrize("chosen", [{VARIANT: "llvm"}, {"ZEPHYR_SDK_INSTALL_DIR": "/opt/sdk"}])
def test_settings_of_the_user_are_kept(programs: Path, chosen: dict[str, str]) -> None:
    assert compiler_for("qemu_riscv32", chosen) == {}
    assert compiler_for("qemu_cortex_m3", chosen) == {}


def test_no_compiler(programs: Path) -> None:
    for path in programs.iterdir():
        path.unlink()
    assert compiler_for("qemu_riscv32", {}) == {}
