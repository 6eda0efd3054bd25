# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every ONNX operator on operands of types that it is not made for: compiled or refused, never a crash."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

import tinyml
from tests.depth import some
from tinyml.base.errors import TinymlError
from tinyml.ops import catalog  # noqa: F401  (registers the readers)
from tinyml.ops.framework.reading import ONNX_READERS

TYPES = {
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "int64": TensorProto.INT64,
    "double": TensorProto.DOUBLE,
}
STANDARD = sorted(name for domain, name in ONNX_READERS if domain == "")


def graph(op_type: str, kind: int, operands: int, constant: bool) -> bytes:
    """One node on inputs of one type; ``constant``: all but the first are constants."""
    names = ["x", "y", "z"][:operands]
    inputs = [helper.make_tensor_value_info(n, kind, [1, 2, 4, 4]) for n in names]
    tables = []
    if constant:
        ones = np.ones((1, 2, 4, 4), helper.tensor_dtype_to_np_dtype(kind))
        tables = [numpy_helper.from_array(ones, name) for name in names[1:]]
        inputs = inputs[:1]
    node = helper.make_node(op_type, names, ["out"])
    if "Pool" in op_type and not op_type.startswith("Global"):
        node.attribute.append(helper.make_attribute("kernel_shape", [2, 2]))
    output = ValueInfoProto(name="out")  # the file does not state its type
    made = helper.make_graph([node], "one", inputs, [output], tables)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("kind", TYPES)
def test_no_type_crashes_the_compiler(kind: str) -> None:
    crashes = []
    operands = ((1, False), (2, False), (2, True), (3, False), (3, True))
    cases = some((op_type, kind, *some_operands) for op_type in STANDARD for some_operands in operands)
    for op_type, _, count, constant in cases:
        try:
            tinyml.compile(graph(op_type, TYPES[kind], count, constant), target="host")
        except TinymlError:
            continue
        except Exception as error:
            crashes.append(f"{op_type} with {count} operands: {type(error).__name__}: {error}")
    assert crashes == []
