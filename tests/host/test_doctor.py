# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml doctor``: it finds what is installed, and names what is missing and how to install it."""

from __future__ import annotations

import io
import stat
from importlib import metadata
from pathlib import Path

import pytest
from rich.console import Console

from tinyml import __version__
from tinyml.setup import doctor, installation, workspace, zephyr_descriptor


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no programs and no workspace; returns the only folder on its PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("ZEPHYR_BASE", "TINYML_WORKSPACE", "TINYML_CMSIS_NN", "ZEPHYR_TOOLCHAIN_VARIANT"):
        monkeypatch.delenv(name, raising=False)
    return programs


def program(folder: Path, name: str, prints: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{prints}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def shown(rows: list[doctor.Row]) -> str:
    text = io.StringIO()
    doctor.render(rows, Console(file=text, width=200))
    return text.getvalue()


def test_a_bare_machine_compiles_but_runs_nothing(bare_machine: Path) -> None:
    rows = doctor.examine()
    able = doctor.able(rows)
    assert able[doctor.COMPILE]
    assert not able[doctor.HOST]
    assert not able[doctor.QEMU]
    assert not able[doctor.QEMU_RISCV]
    assert not able[doctor.ZEPHYR]
    text = shown(rows)
    assert "no   run on QEMU" in text
    assert "apt-get install --no-install-recommends gcc gcc-arm-none-eabi libnewlib-arm-none-eabi" in text
    assert "Zephyr: in this repository: make setup" in text
    missing, _, optional = text.partition("\nOptional:\n")
    assert "CMSIS-NN (faster kernels): add the project" in optional
    assert "add the project" not in missing


def test_programs_are_found_with_their_versions(bare_machine: Path) -> None:
    program(bare_machine, "gcc", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0")
    program(bare_machine, "ninja", "1.11.1")
    program(bare_machine, "dtc", "Version: DTC 1.6.1")
    found = {row.part: row.found for row in doctor.examine()}
    assert found["C compiler gcc"] == "12.2.0"
    assert found["ninja"] == "1.11.1"
    assert found["dtc"] == "1.6.1"
    assert found["cmake"] == ""


def test_a_program_that_fails_counts_as_missing(bare_machine: Path) -> None:
    program(bare_machine, "gcc", "gcc 12.2.0")
    (bare_machine / "gcc").write_text("#!/bin/sh\necho gcc 12.2.0\nexit 1\n")
    assert not doctor.able(doctor.examine())[doctor.HOST]


def test_emulated_machines_are_listed_separately(bare_machine: Path) -> None:
    program(bare_machine, "qemu-system-arm", "mps2-an385           ARM MPS2 with AN385 FPGA image")
    found = {row.part: row.found for row in doctor.examine()}
    assert found["Cortex-M3 (mps2-an385)"] == "emulated"
    assert found["Cortex-M55 (mps3-an547)"] == ""


def test_pages_for_a_browser_need_four_packages(bare_machine: Path, tmp_path: Path) -> None:
    library = tmp_path / "libc.a"
    library.touch()
    program(bare_machine, "clang", str(library))
    found = {row.part: row.found for row in doctor.examine() if row.purpose == doctor.WEB}
    assert found["wasi-libc"] == "present"
    assert found["wasm-ld"] == ""
    assert not doctor.able(doctor.examine())[doctor.WEB]
    program(bare_machine, "clang", "libc.a")  # a bare name: clang does not find it
    assert "wasi-libc libclang-rt-dev-wasm32" in shown(doctor.examine())


def test_zephyr_and_cmsis_nn_are_found_in_a_workspace(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zephyr = tmp_path / "ws" / "zephyr"
    nn = tmp_path / "ws" / "modules" / "lib" / "cmsis-nn" / "Include"
    zephyr.mkdir(parents=True)
    nn.mkdir(parents=True)
    (zephyr / "VERSION").write_text(
        "VERSION_MAJOR = 4\nVERSION_MINOR = 3\nPATCHLEVEL = 1\nVERSION_TWEAK = 0\n"
    )
    (nn / "arm_nnfunctions.h").touch()
    monkeypatch.setenv("TINYML_WORKSPACE", str(tmp_path / "ws"))
    found = {row.part: row.found for row in doctor.examine()}
    assert found["Zephyr"] == f"4.3.1 in {zephyr}"
    assert found["CMSIS-NN (faster kernels)"] == str(nn.parent)


def test_a_wrong_setting_is_explained_not_raised(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYML_CMSIS_NN", "/nowhere")
    assert "TINYML_CMSIS_NN names /nowhere" in shown(doctor.examine())


def test_a_missing_package_makes_it_fail(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = metadata.version
    root = Path(__file__).resolve().parents[2]

    def version(name: str) -> str:
        if name in ("onnx", "west", "platformio"):
            raise metadata.PackageNotFoundError(name)
        return really(name)

    monkeypatch.setattr(metadata, "version", version)
    text = io.StringIO()
    assert doctor.run(Console(file=text, width=200)) == 1
    assert "no   compile models" in text.getvalue()
    assert f"-m pip install -e {root}[zephyr,platformio]" in text.getvalue()


def test_litert_is_optional(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "ai-edge-litert":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    rows = doctor.examine()
    (row,) = [row for row in rows if "ai-edge-litert" in row.part]
    assert (row.found, row.optional, row.extra) == ("", True, "litert")
    assert doctor.able(rows)[doctor.QUANTIZE]
    assert "[litert]" in "\n".join(doctor.remedies(rows))


def test_workspaces_of_deleted_clones_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TINYML_WORKSPACE", "ZEPHYR_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cached = workspace.cache_folder() / "workspace-1"
    (cached / "zephyr").mkdir(parents=True)
    (cached / "zephyr" / "VERSION").write_text("")
    clone = tmp_path / "clone"
    clone.mkdir()
    (cached / "west-tinyml").symlink_to(clone, target_is_directory=True)
    assert workspace.find_zephyr() == cached / "zephyr"
    clone.rmdir()
    assert workspace.find_zephyr() is None


def test_an_old_zephyr_needs_another_revision(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zephyr 3.7 and 4.0 refuse the descriptor of the main branch; the answer names the tag."""
    tree = bare_machine.parent / "zephyr"
    tree.mkdir()
    monkeypatch.setenv("ZEPHYR_BASE", str(tree))

    def row(major: int, minor: int) -> doctor.Row:
        (tree / "VERSION").write_text(f"VERSION_MAJOR = {major}\nVERSION_MINOR = {minor}\nPATCHLEVEL = 0\n")
        (found,) = (row for row in doctor.zephyr() if row.part == "module.yml for this Zephyr")
        return found

    assert row(4, 3).ok
    assert not row(4, 0).ok
    refused = row(3, 7)
    assert not refused.ok
    assert "Zephyr 3.7.0 refuses the key package-managers" in refused.hint
    assert f"`revision: v{__version__}-zephyr-3.7`" in shown([refused])
    module = bare_machine.parent / "module"
    (module / "zephyr").mkdir(parents=True)
    text = (installation.CLONE / zephyr_descriptor.FILE).read_text()
    (module / zephyr_descriptor.FILE).write_text(zephyr_descriptor.without_packages(text))
    monkeypatch.setattr(installation, "CLONE", module)
    assert row(3, 7).ok, "the revision for old versions, or the wheel"
