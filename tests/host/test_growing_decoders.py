# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders whose pasts grow by Concat, token by token beside onnxruntime with caches that really grow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")

from tests.depth import is_deep
from tests.support.growing_decoders import STYLES, Growing, by_onnxruntime, draw, model, samples, texts
from tinyml import harness
from tinyml.base.errors import ConfigError, ModelError, TinymlError, UnsupportedError
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.importers.states import states_of, without_states
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.heads import MASK, POSITION
from tinyml.pipeline import Compiled, Options, compile_model

RANDOM = 40 if is_deep() else 6
BOUND = "past_sequence_length"
SMALL = Growing("llama", layers=2, groups=2, many=2, size=6, longest=12)


def compiled(made: onnx.ModelProto, shape: Growing, folder: Path) -> Compiled:
    onnx.save(made, folder / "grows.onnx")
    shapes = {} if shape.steps == 1 else {"input_ids": (1, shape.steps)}
    return compile_model(
        folder / "grows.onnx", Options("net", "host", shapes=shapes, bounds={BOUND: shape.longest})
    )


def check(shape: Growing, seed: int, folder: Path) -> Compiled:
    file = model(shape, seed)
    made = compiled(file, shape, folder)
    tokens = texts(shape, np.random.default_rng(seed))
    found = harness.run_files(made.files, "host", samples(shape, tokens)).outputs
    for run, (ours, theirs) in enumerate(zip(found, by_onnxruntime(file, shape, tokens), strict=True)):
        close(ours["logits"], theirs, f"{shape}, run {run}")
    return made


def close(ours: Array, theirs: Array, words: str = "") -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=words)


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("style,steps", [*((style, 1) for style in STYLES), ("gpt2", 3), ("llama", 3)])
def test_attention_reads_the_rows_that_are_there(
    style: str, steps: int, positions: bool, tmp_path: Path
) -> None:
    many = 1 if style == "gpt2" else 3
    longest = 16 * steps + 2
    shape = Growing(style, 2, groups=2, many=many, size=8, longest=longest, steps=steps, positions=positions)
    made = check(shape, 5, tmp_path)
    nodes = [node for node in made.graph.nodes if isinstance(node.op, Attention)]
    assert len(nodes) == shape.layers
    assert all(len(node.inputs) == POSITION + 1 and not node.inputs[MASK] for node in nodes)
    assert made.plan.arena_bytes < 4 * shape.groups * shape.longest * shape.size  # no second cache
    states = [state.tensor for state in made.graph.states]
    assert states == [*shape.pasts, *([] if positions else ["length"])]
    assert list(made.graph.inputs) == ["input_ids", *(["position_ids"] if positions else [])]


@pytest.mark.parametrize("number", range(RANDOM))
def test_random_decoders(number: int, tmp_path: Path) -> None:
    check(draw(np.random.default_rng([40, number])), number, tmp_path)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_window_stays_a_mask(steps: int, tmp_path: Path) -> None:
    """Queries that see the last three keys only: the mask is looked up, and the position limits it."""
    shape = replace(SMALL, steps=steps, mask=False)
    file = model(shape, 3)
    (greater,) = (node for node in file.graph.node if node.op_type == "Greater")
    columns, rows = greater.input
    three = helper.make_tensor("three", TensorProto.INT64, [], [3])
    file.graph.initializer.append(three)
    later = helper.make_node("Greater", [columns, rows], ["later"])
    ahead = helper.make_node("Add", [columns, "three"], ["ahead"])
    before = helper.make_node("LessOrEqual", ["ahead", rows], ["before"])
    either = helper.make_node("Or", ["later", "before"], list(greater.output))
    place = list(file.graph.node).index(greater)
    nodes = [*file.graph.node[:place], later, ahead, before, either, *file.graph.node[place + 1 :]]
    del file.graph.node[:]
    file.graph.node.extend(nodes)
    made = compiled(file, shape, tmp_path)
    tokens = texts(shape, np.random.default_rng(3))
    found = harness.run_files(made.files, "host", samples(shape, tokens)).outputs
    for ours, theirs in zip(found, by_onnxruntime(file, shape, tokens), strict=True):
        close(ours["logits"], theirs)


def test_weights_that_are_cleared_stay_cleared(tmp_path: Path) -> None:
    """A Where with zeros after softmax is PyTorch's guard against NaN only if its condition is IsNaN."""
    file = model(SMALL, 7)
    softmax = next(node for node in file.graph.node if node.op_type == "Softmax")
    (weights,) = softmax.output
    softmax.output[0] = "all_weights"
    limit, zero = (
        helper.make_tensor(n, TensorProto.FLOAT, [], [v]) for n, v in (("limit", 0.2), ("zero", 0))
    )
    file.graph.initializer.extend([limit, zero])
    small = helper.make_node("Less", ["all_weights", "limit"], ["is_small"])
    cleared = helper.make_node("Where", ["is_small", "zero", "all_weights"], [weights])
    place = list(file.graph.node).index(softmax) + 1
    nodes = [*file.graph.node[:place], small, cleared, *file.graph.node[place:]]
    del file.graph.node[:]
    file.graph.node.extend(nodes)
    made = compiled(file, SMALL, tmp_path)
    tokens = texts(SMALL, np.random.default_rng(7))
    found = harness.run_files(made.files, "host", samples(SMALL, tokens)).outputs
    for ours, theirs in zip(found, by_onnxruntime(file, SMALL, tokens), strict=True):
        close(ours["logits"], theirs)


@pytest.mark.parametrize("steps", [1, 3])
def test_positions_outside_write_and_read_inside(steps: int, tmp_path: Path) -> None:
    """Under sanitizers; the C and numpy agree on what is limited."""
    shape = replace(SMALL, steps=steps)
    made = compiled(model(shape, 4), shape, tmp_path)
    far = (12, -1, 2**31 - 1, -(2**31), 2**40, -(2**40), 2**62, -(2**62), 2**32 + 1, 11, 10, 9)
    tokens = np.random.default_rng(4).integers(0, 11, (len(far), 1, steps))
    places = [np.full((1, steps), place) for place in far]
    runs = [{"input_ids": t, "position_ids": p} for t, p in zip(tokens, places, strict=True)]
    found = harness.run_files(made.files, "host", runs).outputs
    for ours, numpy_values in zip(found, interpret(made.graph, runs), strict=True):
        close(ours["logits"], numpy_values["logits"])


def test_a_full_cache_keeps_its_last_row_for_new_ones(tmp_path: Path) -> None:
    shape = replace(SMALL, positions=False)
    made = compiled(model(shape, 6), shape, tmp_path)
    tokens = np.random.default_rng(6).integers(0, 11, (shape.longest + 4, 1, 1))
    runs = [{"input_ids": token} for token in tokens]
    found = harness.run_files(made.files, "host", runs).outputs
    for ours, numpy_values in zip(found, interpret(made.graph, runs), strict=True):
        close(ours["logits"], numpy_values["logits"])


def test_the_reference_follows_positions_back_and_forth(tmp_path: Path) -> None:
    """`tinyml verify` draws any positions; rows of an earlier text stay where they were."""
    onnx.save(model(SMALL, 7), tmp_path / "grows.onnx")
    graph = load(tmp_path / "grows.onnx", bounds={BOUND: SMALL.longest})
    random = np.random.default_rng(7)
    runs = [
        {"input_ids": random.integers(0, 11, (1, 1)), "position_ids": np.array([[place]])}
        for place in (0, 1, 2, 0, 5, 3, 11, 1)
    ]
    wanted = OnnxRuntime(read_model(tmp_path / "grows.onnx"), graph).run(runs)
    for ours, theirs in zip(interpret(graph, runs), wanted, strict=True):
        close(ours["logits"], theirs.outputs[0])


def test_a_shape_states_the_length_too(tmp_path: Path) -> None:
    onnx.save(model(SMALL, 8), tmp_path / "grows.onnx")
    past = (1, SMALL.groups, 9, SMALL.size)
    graph = load(tmp_path / "grows.onnx", {"past_key_values.1.value": past})
    assert {graph.tensors[state.tensor].shape for state in graph.states} == {past}


def test_rotary_embeddings_have_one_row_for_each_position(tmp_path: Path) -> None:
    shape = replace(SMALL, steps=3)
    made = compiled(model(shape, 9), shape, tmp_path)
    sizes = [t.shape for t in made.graph.tensors.values() if t.is_constant]
    assert sizes.count((shape.longest, shape.size)) == 2


def test_states_that_are_taken_out_do_not_come_back_by_their_names() -> None:
    file = model(SMALL, 1)
    assert [state.input for state in states_of(file)] == SMALL.pasts
    without_states(file)
    assert not states_of(file)


def test_an_open_extent_beside_the_tokens_is_noted(tmp_path: Path) -> None:
    """The batch and the tokens of a run are 1 by design; anything else may be a mistake."""
    file = model(SMALL, 1)
    file.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, ["b", "encoder_length"]))
    file.graph.node.append(helper.make_node("ReduceSum", ["more"], ["sum"], keepdims=0))
    file.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, []))
    onnx.save(file, tmp_path / "grows.onnx")
    found = [n for n in load(tmp_path / "grows.onnx", bounds={BOUND: 12}).notes if "taken as 1" in n]
    assert len(found) == 1
    assert "input 'more' leaves encoder_length open" in found[0]
    assert "--shape more=1x? sets it" in found[0]
    stated = load(tmp_path / "grows.onnx", {"more": (1, 5)}, {BOUND: 12}).notes
    assert not any("taken as 1" in note for note in stated)


def merged(file: onnx.ModelProto) -> None:
    """The presents come out of an If, as in optimum's decoder_model_merged.onnx."""
    name = "present.0.key"
    (concat,) = (node for node in file.graph.node if name in node.output)
    concat.output[0] = "joined"
    for node in file.graph.node:
        for index, read in enumerate(node.input):
            node.input[index] = "joined" if read == name else read
    value = helper.make_tensor_value_info
    branches = [
        helper.make_graph(
            [helper.make_node("Identity", ["joined"], [f"{word}_key"])],
            word,
            [],
            [value(f"{word}_key", TensorProto.FLOAT, None)],
        )
        for word in ("then", "else")
    ]
    flag = value("use_cache_branch", TensorProto.BOOL, [1])
    file.graph.input.append(flag)
    file.graph.node.append(
        helper.make_node("If", ["use_cache_branch"], [name], then_branch=branches[0], else_branch=branches[1])
    )


def four_axes(file: onnx.ModelProto) -> None:
    (mask,) = (value for value in file.graph.input if value.name == "attention_mask")
    mask.CopyFrom(helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["b", 1, "q", "k"]))


def reduced(file: onnx.ModelProto) -> None:
    """The mean of all keys goes into the logits."""
    node = file.graph.node[-1]
    logits = node.output[0]
    node.output[0] = "before"
    mean = helper.make_node("ReduceMean", ["present.0.key"], ["mean"], keepdims=0)
    file.graph.node.extend([mean, helper.make_node("Add", ["before", "mean"], [logits])])


def longer(file: onnx.ModelProto) -> None:
    """An output with an element for each key."""
    file.graph.node.append(helper.make_node("Relu", ["present.0.key"], ["relu"]))
    file.graph.output.append(helper.make_tensor_value_info("relu", TensorProto.FLOAT, None))


def without_new_rows(file: onnx.ModelProto) -> None:
    file.graph.node.insert(0, helper.make_node("Neg", ["past_key_values.0.value"], ["negative"]))
    file.graph.node.append(helper.make_node("ReduceSum", ["negative"], ["sum"], keepdims=0))
    file.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, []))


def with_a_pole(file: onnx.ModelProto) -> None:
    """Rows of a cache that no run has written are zeros."""
    (at,) = (i for i, node in enumerate(file.graph.node) if "present.0.value" in node.output)
    file.graph.node.insert(at + 1, helper.make_node("Reciprocal", ["present.0.value"], ["one_by_value"]))


REFUSED = {
    with_a_pole: (UnsupportedError, "may divide by zero in empty rows", "docs/decoders.md"),
    merged: (UnsupportedError, "comes out of an If", "decoder_with_past_model.onnx"),
    four_axes: (UnsupportedError, "'attention_mask' has 4 axes", "(batch, length)"),
    reduced: (UnsupportedError, "mixes the rows of 'present.0.key'", "docs/decoders.md"),
    longer: (UnsupportedError, "the output 'relu' grows", "--outputs"),
    without_new_rows: (UnsupportedError, "without its new rows", "docs/decoders.md"),
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_what_does_not_fit_is_refused(change: object, tmp_path: Path) -> None:
    kind, message, hint = REFUSED[change]  # type: ignore[index]
    file = model(SMALL, 1)
    change(file)  # type: ignore[operator]
    onnx.save(file, tmp_path / "grows.onnx")
    with pytest.raises(kind, match=message) as caught:
        load(tmp_path / "grows.onnx", bounds={BOUND: 12})
    assert hint in caught.value.hint


SETTINGS: dict[str, tuple[type[TinymlError], str, dict[str, tuple[int, ...]], dict[str, int]]] = {
    "--bound past_sequence_length=128": (ModelError, "longest length is not stated", {}, {}),
    "set it to 1": (UnsupportedError, "a batch of 2", {"input_ids": (2, 1)}, {BOUND: 12}),
    "leave out --shape attention_mask": (ConfigError, "by itself", {"attention_mask": (1, 12)}, {BOUND: 12}),
    "state a longer length": (ConfigError, "adds 5 rows to caches of 4", {"input_ids": (1, 5)}, {BOUND: 4}),
    "state one for all": (
        ConfigError,
        "several lengths",
        {"past_key_values.0.key": (1, 2, 8, 6)},
        {BOUND: 12},
    ),
    "its inputs are input_ids": (ConfigError, "no input called ids", {"ids": (1, 1)}, {BOUND: 12}),
}


@pytest.mark.parametrize("hint", SETTINGS)
def test_settings_that_do_not_fit_are_refused(hint: str, tmp_path: Path) -> None:
    kind, message, shapes, bounds = SETTINGS[hint]
    onnx.save(model(SMALL, 1), tmp_path / "grows.onnx")
    with pytest.raises(kind, match=message) as caught:
        load(tmp_path / "grows.onnx", shapes, bounds)
    assert hint in caught.value.hint
