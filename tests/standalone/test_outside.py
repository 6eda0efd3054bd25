# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An operator from outside on emulated cores: linked in, and in a slot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyml.ops.framework import outside
from tinyml.verbs.cli import main

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "custom_operator"
MODEL = [str(SAMPLE / "models" / "curve.onnx"), "--operators", str(SAMPLE / "mexican_hat.py")]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    undo = outside.snapshot()
    yield
    undo()


@pytest.mark.parametrize("machine", ["qemu-cortex-m0", "qemu-cortex-m4"])
def test_agreement(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *MODEL, "--on", machine]) == 0
    assert f"agrees on {machine} with numpy" in capsys.readouterr().out


def test_pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slots = ["--target", "cortex-m3", "--slots", "a=0x40000,b=0x50000", "-o", str(tmp_path / "curve.tmodel")]
    assert main(["pack", *MODEL, *slots]) == 0, capsys.readouterr().err
    assert (tmp_path / "curve.tmodel").stat().st_size > 0
