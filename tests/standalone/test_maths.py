# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""<tinyml/maths.h> on the emulated cores: the numbers, and fewer instructions than newlib takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tinyml import harness
from tinyml.pipeline import Options, compile_model

FUNCTIONS = {
    "Exp": ("exp", np.exp),
    "Tanh": ("tanh", np.tanh),
    "Log": ("log", np.log),
    "Sin": ("sin", np.sin),
}
X = np.linspace(0.01, 9.0, 64, dtype=np.float32)


@pytest.fixture(params=["qemu-cortex-m3", "qemu-cortex-m4"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("op_type", list(FUNCTIONS))
def test_exact_and_faster_than_newlib(tmp_path: Path, machine: str, op_type: str) -> None:
    function, exact = FUNCTIONS[op_type]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [X.size]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "model.onnx")
    target = harness.find_machine(machine).target.name
    compiled = compile_model(tmp_path / "model.onnx", Options(name="m", target=target))
    counts = []
    for folder, source in (
        ("own", compiled.files["m.c"]),
        ("newlib", compiled.files["m.c"].replace(f"tinyml_{function}f(", f"{function}f(")),
    ):
        (tmp_path / folder).mkdir()
        for name, text in {**compiled.files, "m.c": "#include <math.h>\n" + source}.items():
            (tmp_path / folder / name).write_text(text)
        result = harness.run(tmp_path / folder, machine, [{"x": X}])
        np.testing.assert_array_max_ulp(
            result.outputs[0]["y"], exact(X.astype(np.float64)).astype(np.float32), 2
        )
        assert result.instructions is not None
        counts.append(result.instructions[0])
    assert counts[0] < counts[1], (function, counts)
