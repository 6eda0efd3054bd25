# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantised attention with a constant mask, which PyTorch adds to the scores, is one layer on bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tinyml import harness
from tinyml.ir import Array
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import MASK
from tinyml.pipeline import Compiled, Options, compile_model, program_of
from tinyml.quantize.engine import quantize
from tinyml.reference.session import answers
from tinyml.settings.quantize_request import Request
from tinyml.slots.data import data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

STEPS, HEADS, DEPTH = 7, 2, 4
WIDTH = HEADS * DEPTH
PLACES = np.arange(STEPS)
NEAR = np.abs(PLACES[:, None] - PLACES) <= 2
BEFORE = PLACES[:, None] >= PLACES
SHORT = np.broadcast_to(PLACES < 5, (1, STEPS))


def added(seen: Array, low: float) -> Array:
    return np.where(seen, 0, low).astype(np.float32)


TABLES = {
    "near": added(NEAR, -np.inf),
    "near_with_axes": added(NEAR, -1e9).reshape(1, 1, STEPS, STEPS),
    "near_by_ten_thousand": added(NEAR, -1e4),
    "near_by_hundred": added(NEAR, -100),
    "padding": added(SHORT, -np.inf),
    "one_for_each_head": np.stack([added(NEAR, -np.inf), added(BEFORE, -np.inf)])[None],
    "same_for_all_heads": np.stack([added(NEAR, -np.inf)] * HEADS)[None],
}
CAUSAL = {
    "no_number": added(BEFORE, -np.inf),
    "lowest_number": added(BEFORE, np.finfo(np.float32).min),
    "hundred": added(BEFORE, -100),
    "ten_thousand": added(BEFORE, -1e4),
}
LITTLE = added(NEAR, -3.0)
APART = {
    "not_quite": added(NEAR, -30.0),
    "a_query_without_keys": added(NEAR & (PLACES != 3)[:, None], -1e4),
}


def attention(mask: Array) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    constants = {
        "mask": mask,
        "heads": np.array([1, STEPS, HEADS, DEPTH]),
        "joined": np.array([1, STEPS, WIDTH]),
        **{f"w{n}": rng.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32) for n in "qkvo"},
    }
    nodes = []
    for name in "qkv":
        perm = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Reshape", [f"{name}0", "heads"], [f"{name}1"]),
            helper.make_node("Transpose", [f"{name}1"], [name], perm=perm),
        ]
    nodes += [
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["summed"]),
        helper.make_node("Transpose", ["summed"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["turned", "joined"], ["rows"]),
        helper.make_node("MatMul", ["rows", "wo"], ["y"]),
    ]
    shape = [1, STEPS, WIDTH]
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(0, 1, (count, 1, STEPS, WIDTH)).astype(np.float32)


def quantised(mask: Array, folder: Path) -> tuple[onnx.ModelProto, Compiled]:
    onnx.save(attention(mask), folder / "real.onnx")
    np.savez(folder / "samples.npz", x=samples(16, 1))
    model = quantize(folder / "real.onnx", Request(folder / "samples.npz", method="minmax")).model
    onnx.save(model, folder / "bytes.onnx")
    return model, compile_model(folder / "bytes.onnx", Options("m", "host"))


def agrees(model: onnx.ModelProto, made: Compiled) -> None:
    """With onnxruntime on the same file: no output is more than a step off."""
    (name,) = made.graph.inputs
    inputs = [{name: x} for x in samples(4, 2)]
    results = harness.run_files(made.files, "host", inputs).outputs
    for given, found in zip(inputs, results, strict=True):
        (wanted,) = answers(model, {"x": given[name]})
        (y,) = found.values()
        step = float(np.min(np.diff(np.unique(wanted))))
        assert float(np.abs(y - wanted).max()) < 1.01 * step


def attentions(made: Compiled) -> list[tuple[AttentionInt8, bool]]:
    return [
        (layer.op, layer.has_input(MASK))
        for layer in made.graph.layers()
        if isinstance(layer.op, AttentionInt8)
    ]


@pytest.mark.parametrize("name", TABLES)
def test_a_mask_becomes_a_table(name: str, tmp_path: Path) -> None:
    model, made = quantised(TABLES[name], tmp_path)
    ((op, masked),) = attentions(made)
    assert masked
    assert not op.causal
    assert made.summary["arena_bytes"] < 4 * HEADS * STEPS * STEPS + WIDTH * STEPS
    agrees(model, made)


GAPS = added((PLACES[:, None] + PLACES) % 3 != 1, -np.inf)
"""Hidden keys are between others."""


@pytest.mark.parametrize(
    "mask,count",
    [(TABLES["near"], 1), (GAPS, 1), (TABLES["one_for_each_head"], HEADS)],
    ids=["near", "gaps", "heads"],
)
def test_masks_are_played(mask: Array, count: int, tmp_path: Path) -> None:
    """Heads that see other keys are a call of their own."""
    _, made = quantised(mask, tmp_path)
    calls = [call.function for call in program_of(made).calls()]
    assert calls.count("tinyml_attention_masked_s8") == count
    image = data_image(made, Version(1, 0, 0, 0))
    inputs = {made.graph.inputs[0]: samples(1, 3)[0]}
    checked = harness.Options(sanitize=True, strict=True)
    (played,) = harness.run_files(
        play_files(image.content, "host"), "host", [inputs], options=checked
    ).outputs
    (wanted,) = harness.run_files(made.files, "host", [inputs]).outputs
    (name,) = made.graph.outputs
    np.testing.assert_array_equal(played[name], wanted[name])


@pytest.mark.parametrize("name", CAUSAL)
def test_a_mask_of_later_keys_needs_none(name: str, tmp_path: Path) -> None:
    model, made = quantised(CAUSAL[name], tmp_path)
    ((op, masked),) = attentions(made)
    assert (op.causal, op.past, masked) == (True, 0, False)
    agrees(model, made)


def test_a_little_is_a_bias(tmp_path: Path) -> None:
    model, made = quantised(LITTLE, tmp_path)
    ((op, masked),) = attentions(made)
    assert not masked
    assert op.bias_starts == (0, 0)
    agrees(model, made)


@pytest.mark.parametrize("name", APART)
def test_other_masks_are_added(name: str, tmp_path: Path) -> None:
    model, made = quantised(APART[name], tmp_path)
    assert not attentions(made)
    agrees(model, made)


@pytest.mark.parametrize("low", [-30, -100, -400])
def test_hidden_keys_cost_no_accuracy(low: float, tmp_path: Path) -> None:
    """With the mask in the range of int8 scores these were 29.1, 24.0 and 13.1 dB."""
    decibels = []
    for number, value in enumerate((low, -1e9)):
        folder = tmp_path / str(number)
        folder.mkdir()
        onnx.save(attention(added(NEAR, value)), folder / "real.onnx")
        np.savez(folder / "samples.npz", x=samples(16, 1))
        request = Request(folder / "samples.npz", method="minmax")
        decibels.append(quantize(folder / "real.onnx", request).report.decibels)
    assert decibels[0] > decibels[1] - 0.5
