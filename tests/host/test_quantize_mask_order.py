# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The quantiser adds a bias to scores before what hides keys, however exporters write that, and leaves
other sums as they are. The float model computes the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.biased_attention import Shape, attention
from tests.support.transformers import Writer
from tinyml.ir import Array
from tinyml.quantize.mask_order import mask_last
from tinyml.reference.session import answers

HEADS, QUERIES, KEYS = 2, 5, 7
LOWEST = float(np.finfo(np.float32).min)


def drawn(seed: int, low: float) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """softmax(scores + (bias + mask)) with operands in any order; the mask is made of bits in some way."""
    rng, file = np.random.default_rng(seed), Writer(0)
    size = (1, HEADS, QUERIES, KEYS)
    kind = (TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT)[rng.integers(3)]
    bits = ((1, 1, 1, KEYS), (1, 1, QUERIES, KEYS), (1, KEYS))[rng.integers(3)]
    kept = rng.random(bits) < 0.6
    kept[..., 0] = True
    given = {"scores": rng.normal(0, 2, size), "kept": kept.astype(helper.tensor_dtype_to_np_dtype(kind))}
    if rng.random() < 0.5:
        given["bias"], bias = rng.normal(0, 1, (1, HEADS, QUERIES, KEYS)), "bias"
    else:
        bias = file.constant("bias", rng.normal(0, 1, (1, HEADS, 1, KEYS)))
    low_name, one, zero = (file.constant(n, np.float32(v)) for n, v in (("l", low), ("one", 1), ("zero", 0)))
    if rng.random() < 0.5:
        truth = file.add("Cast", ["kept"], "truth", to=TensorProto.BOOL)
        mask = file.add("Where", [truth, zero, low_name], "mask")
    else:
        number = file.add("Cast", ["kept"], "number", to=TensorProto.FLOAT)
        mask = file.add("Mul", [file.add("Sub", [one, number], "hidden"), low_name], "mask")
    if len(bits) == 2:
        axes = file.constant("axes", np.array([1, 2]))
        mask = file.add("Unsqueeze", [mask, axes], "wide")
    both = file.add("Add", [bias, mask][:: rng.choice([1, -1])], "both")
    masked = file.add("Add", ["scores", both][:: rng.choice([1, -1])], "masked")
    y = file.add("Softmax", [masked], "y", axis=-1)
    types = {"scores": TensorProto.FLOAT, "kept": kind, "bias": TensorProto.FLOAT}
    inputs = [helper.make_tensor_value_info(n, types[n], array.shape) for n, array in given.items()]
    outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, size)]
    graph = helper.make_graph(file.nodes, "masked", inputs, outputs, file.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {
        name: array if name == "kept" else array.astype(np.float32) for name, array in given.items()
    }


def text(model: onnx.ModelProto) -> list[str]:
    return [f"{node.op_type} {list(node.input)} {list(node.output)}" for node in model.graph.node]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("low", [-1e4, -1e9, LOWEST])
def test_the_mask_comes_last(seed: int, low: float) -> None:
    model, given = drawn(seed, low)
    (before,) = answers(model, given)
    mask_last(model)
    onnx.checker.check_model(model, full_check=True)
    softmax = model.graph.node[-1]
    (last,) = (node for node in model.graph.node if node.output[0] == softmax.input[0])
    (first,) = (node for node in model.graph.node if node.output[0] == last.input[0])
    assert {"scores", "bias"} == set(first.input)
    assert last.input[1] in ("mask", "wide")
    assert all("both" not in node.output for node in model.graph.node)
    (after,) = answers(model, given)
    np.testing.assert_allclose(after, before, atol=1e-6, rtol=1e-6)
    np.testing.assert_array_equal(after == 0, before == 0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("low", [0.0, -3.0, 1e4])
def test_what_hides_nothing_stays_where_it_is(seed: int, low: float) -> None:
    model, _ = drawn(seed, low)
    before = text(model)
    mask_last(model)
    assert text(model) == before


def test_every_reader_of_a_shared_sum_gets_its_own() -> None:
    """T5 computes the sum once for all layers."""
    model, given = drawn(3, LOWEST)
    (adding,) = (node for node in model.graph.node if "both" in node.input)
    other = onnx.NodeProto()
    other.CopyFrom(adding)
    other.name, other.output[0] = "masked2", "masked2"
    model.graph.node.extend([other, helper.make_node("Softmax", ["masked2"], ["z"], axis=-1)])
    model.graph.output.append(
        helper.make_tensor_value_info("z", TensorProto.FLOAT, (1, HEADS, QUERIES, KEYS))
    )
    before = answers(model, given)
    mask_last(model)
    assert not any("both" in node.output for node in model.graph.node)
    for found, wanted in zip(answers(model, given), before, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6, rtol=1e-6)


def test_a_sum_that_is_an_output_too_stays() -> None:
    model, _ = drawn(3, LOWEST)
    model.graph.output.append(helper.make_tensor_value_info("both", TensorProto.FLOAT, None))
    mask_last(model)
    assert any("both" in node.output for node in model.graph.node)


def test_a_bias_without_a_mask_stays() -> None:
    model = attention(Shape(8, 2, 4, scaled=False))
    before = text(model)
    mask_last(model)
    assert text(model) == before
