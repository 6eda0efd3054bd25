# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases with three spatial axes, which PyTorch wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tinyml import harness
from tinyml.importers import onnx_graph
from tinyml.pipeline import Options, compile_built

FOLDER = Path(onnx.__file__).parent / "backend/test/data/pytorch-converted"
CASES = sorted(
    path.name for kind in ("Conv3d", "MaxPool3d", "AvgPool3d") for path in FOLDER.glob(f"test_{kind}*")
)


def test_there_are_cases() -> None:
    assert len(CASES) >= 12


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    data = FOLDER / name / "test_data_set_0"
    x, y = (
        numpy_helper.to_array(onnx.TensorProto.FromString((data / file).read_bytes()))
        for file in ("input_0.pb", "output_0.pb")
    )
    graph = onnx_graph.read(onnx.load(FOLDER / name / "model.onnx"), "case", {})
    files = compile_built(graph, Options("case", "host")).files
    checked = harness.Options(sanitize=True, strict=True)
    (found,) = harness.run_files(files, "host", [{graph.inputs[0]: x}], options=checked).outputs
    np.testing.assert_allclose(found[graph.outputs[0]], y, rtol=1e-4, atol=1e-5)
