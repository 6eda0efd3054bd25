# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``custom_tinyml_quantize``: a float model in a PlatformIO project is built as int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from tests.platformio.conftest import REPOSITORY, MakeProject
from tests.platformio.digits import HOST, built, sample

FLOAT = REPOSITORY / "samples" / "digits" / "model_float.onnx"


def calibrate(folder: Path, count: int) -> None:
    np.savez(folder / "calib.npz", image=(load_digits().images / 16).astype(np.float32)[:count])


def test_a_float_model_is_built_as_int8(make_project: MakeProject) -> None:
    project = sample(make_project(f"{HOST}\ncustom_tinyml_quantize =\n    calib.npz\n    method=minmax\n"))
    (project.folder / "models" / "digits.onnx").write_bytes(FLOAT.read_bytes())
    output = project.fail()
    assert "there is no calibration data" in output

    calibrate(project.folder, 100)
    output = project.build()
    assert "tinyml: digits: int8:" in output
    source = project.generated("digits.c").read_text()
    assert "int8 calibrated on calib.npz, method minmax" in source
    assert "conv_f32" not in source
    assert built(project.build()) == []

    calibrate(project.folder, 20)
    assert "digits.onnx" in built(project.build())
