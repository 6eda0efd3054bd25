# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml verify` on every core: it agrees, and a kernel that is wrong only there is found there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml import harness
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Sheet, kernels_of
from tinyml.ops.pool.max import MaxPool
from tinyml.verbs.cli import main

DIGITS = str(Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx")


@pytest.mark.parametrize("machine", harness.CORES)
def test_agreement(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", DIGITS, "--on", machine]) == 0
    assert f"agrees on {machine} with onnxruntime" in capsys.readouterr().out


def test_fault_of_one_core(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for kernel in kernels_of(MaxPool):
        genuine = kernel.emit

        def spoiled(layer: Layer, sheet: Sheet, genuine=genuine) -> None:  # type: ignore[no-untyped-def]
            genuine(layer, sheet)
            sheet.lines += ["#ifdef __ARM_ARCH_7M__", f"\t{sheet.y()}[0] = 99;", "#endif"]

        monkeypatch.setattr(kernel, "emit", spoiled)
    assert main(["verify", DIGITS, "--on", "qemu-cortex-m4", "--samples", "1"]) == 0
    capsys.readouterr()
    assert main(["verify", DIGITS, "--on", "qemu-cortex-m3", "--samples", "1"]) == 3
    printed = capsys.readouterr().out
    assert "MaxPool" in printed
    assert "at 0: 99 instead of" in printed
