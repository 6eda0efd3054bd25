# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders with a cache of keys and values as state, step by step beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")

from tests.depth import is_deep
from tests.support.decoders import FORMS, GROWING, STATES, Shape, draw, model, tokens
from tinyml import harness
from tinyml.base.errors import ModelError
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.heads import POSITION
from tinyml.pipeline import Compiled, Options, compile_model

RANDOM = 24 if is_deep() else 4  # decoders for each seed


def close(ours: Array, theirs: Array, words: str = "") -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=words)


def compiled(shape: Shape, seed: int, folder: Path) -> tuple[Path, Compiled]:
    path = folder / f"{shape.name}.onnx"
    onnx.save(model(shape, seed), path)
    shapes = dict.fromkeys(STATES, (1, shape.groups, shape.longest, shape.size))
    return path, compile_model(path, Options("net", "host", shapes=shapes))


def check(shape: Shape, seed: int, folder: Path, runs: int) -> Compiled:
    """The C gives what onnxruntime gives, whose presents are the next run's pasts."""
    path, made = compiled(shape, seed, folder)
    samples = tokens(shape, np.random.default_rng(seed), runs)
    found = harness.run_files(made.files, "host", samples).outputs
    wanted = OnnxRuntime(read_model(path), load(path)).run(samples)
    for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        close(ours["y"], theirs.outputs[0], f"{shape}, run {number}")
    return made


def attention_of(made: Compiled) -> list[Attention]:
    return [node.op for node in made.graph.nodes if isinstance(node.op, Attention)]


@pytest.mark.parametrize("form", sorted(FORMS))
def test_one_token_writes_its_row_and_reads_what_is_there(form: str, tmp_path: Path) -> None:
    shape = Shape(form, groups=2, many=3, size=16, longest=24, rotary=True)
    made = check(shape, 7, tmp_path, runs=30)
    (node,) = (n for n in made.graph.nodes if isinstance(n.op, Attention))
    assert len(node.inputs) == POSITION + 1  # keys after the position are not read
    if form != "rows":  # which transposes the cache
        assert made.plan.arena_bytes < 4 * shape.groups * shape.longest * shape.size  # no second cache
    assert [state.tensor for state in made.graph.states] == list(STATES)


@pytest.mark.parametrize("form", sorted({*FORMS} - {"where"}))
def test_several_tokens_read_what_is_there(form: str, tmp_path: Path) -> None:
    shape = Shape(form, groups=2, many=2, size=8, longest=20, steps=4)
    made = check(shape, 7, tmp_path, runs=5)
    (node,) = (n for n in made.graph.nodes if isinstance(n.op, Attention))
    assert len(node.inputs) == POSITION + 1
    assert not any(t.elements == shape.steps * shape.longest for t in made.graph.tensors.values())


@pytest.mark.parametrize("number", range(RANDOM))
def test_random_decoders(number: int, tmp_path: Path) -> None:
    random = np.random.default_rng([39, number])
    for seed in range(3):
        check(draw(random), 100 * number + seed, tmp_path, runs=12)


@pytest.mark.parametrize(
    "form,steps",
    [(form, steps) for form in sorted(FORMS) for steps in (1, 3) if (form, steps) != ("where", 3)],
)
def test_positions_outside_write_and_read_inside(form: str, steps: int, tmp_path: Path) -> None:
    """Under sanitizers; the C and numpy agree on what is limited."""
    shape = Shape(form, groups=1, many=2, size=16, longest=8, steps=steps)
    _, made = compiled(shape, 3, tmp_path)
    samples = tokens(shape, np.random.default_rng(3), 12)
    far = (8, -1, 2**31 - 1, -(2**31), 2**40, -(2**40), 2**62, -(2**62), 2**32 + 1, 7, 6, 9)
    for sample, position in zip(samples, far, strict=True):
        sample["position"] = np.array([position])
    found = harness.run_files(made.files, "host", samples).outputs
    for ours, numpy_values in zip(found, interpret(made.graph, samples), strict=True):
        close(ours["y"], numpy_values["y"])


def test_a_cache_starts_again_after_a_reset(tmp_path: Path) -> None:
    """Rows that an earlier text has left behind are not read."""
    shape = Shape("standard", groups=1, many=1, size=8, longest=16)
    _, made = compiled(shape, 5, tmp_path)
    random = np.random.default_rng(5)
    texts = [tokens(shape, random, 9) for _ in range(2)]
    first, second = ([x | {"position": np.array([i])} for i, x in enumerate(text)] for text in texts)
    alone = harness.run_files(made.files, "host", second).outputs
    after = harness.run_files(made.files, "host", [*first, *second]).outputs[len(first) :]
    for one, other in zip(alone, after, strict=True):
        np.testing.assert_array_equal(one["y"], other["y"])


@pytest.mark.parametrize("form", sorted(GROWING))
@pytest.mark.parametrize("steps", [1, 2])
def test_a_past_that_grows_is_a_cache(form: str, steps: int, tmp_path: Path) -> None:
    """In the file the present is longer than the past; here it stays in one place, and runs are counted."""
    many = 3 if form == "growing" else 1
    shape = Shape(form, groups=2, many=many, size=6, longest=14, steps=steps)
    path, made = compiled(shape, 11, tmp_path)
    shapes = dict.fromkeys(STATES, (1, shape.groups, shape.longest, shape.size))
    random = np.random.default_rng(11)
    runs = shape.longest // steps
    samples = [{"x": random.normal(size=(1, steps, shape.width)).astype(np.float32)} for _ in range(runs)]
    found = harness.run_files(made.files, "host", samples).outputs
    wanted = OnnxRuntime(read_model(path), load(path, shapes)).run(samples)
    for ours, theirs in zip(found, wanted, strict=True):
        close(ours["y"], theirs.outputs[0])
    (node,) = (n for n in made.graph.nodes if isinstance(n.op, Attention))
    assert len(node.inputs) == POSITION + 1
    assert made.plan.arena_bytes < 4 * shape.groups * shape.longest * shape.size
    full = [*samples, *samples[:3]]  # rows after the last are written into it
    found = harness.run_files(made.files, "host", full).outputs
    for ours, numpy_values in zip(found, interpret(made.graph, full), strict=True):
        close(ours["y"], numpy_values["y"])


def test_a_past_that_grows_in_another_way_is_refused(tmp_path: Path) -> None:
    cache, longer = (1, 1, "past", 4), (1, 1, "total", 4)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Concat", ["x", "past"], ["present"], axis=2),  # new rows come first
            helper.make_node("Relu", ["x"], ["y"]),
        ],
        "concat",
        [value("x", TensorProto.FLOAT, (1, 1, 1, 4)), value("past", TensorProto.FLOAT, cache)],
        [value("y", TensorProto.FLOAT, (1, 1, 1, 4)), value("present", TensorProto.FLOAT, longer)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(made, {"tinyml.states": '{"past": "present"}'})
    onnx.save(made, tmp_path / "concat.onnx")
    with pytest.raises(ModelError, match="do not match") as caught:
        compile_model(tmp_path / "concat.onnx", Options("net", "host", shapes={"past": (1, 1, 8, 4)}))
    assert "docs/decoders.md" in caught.value.hint


def test_a_past_of_keys_and_values_in_one_tensor(tmp_path: Path) -> None:
    """Attention of com.microsoft, which projects its input as well."""
    random = np.random.default_rng(12)
    weights = [random.normal(size=shape).astype(np.float32) for shape in ((12, 48), (48,))]
    value = helper.make_tensor_value_info
    names = ["x", "weights", "bias", "", "past"]
    node = helper.make_node(
        "Attention", names, ["y", "present"], domain="com.microsoft", num_heads=2, unidirectional=1
    )
    graph = helper.make_graph(
        [node],
        "projected",
        [value("x", TensorProto.FLOAT, (1, 1, 12)), value("past", TensorProto.FLOAT, (2, 1, 2, "past", 8))],
        [value("y", TensorProto.FLOAT, (1, 1, 16)), value("present", TensorProto.FLOAT, (2, 1, 2, "all", 8))],
        [numpy_helper.from_array(w, n) for w, n in zip(weights, names[1:3], strict=True)],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=8)
    helper.set_model_props(made, {"tinyml.states": '{"past": "present"}'})
    path, shapes = tmp_path / "projected.onnx", {"past": (2, 1, 2, 10, 8)}
    onnx.save(made, path)
    program = compile_model(path, Options("net", "host", shapes=shapes))
    samples = [{"x": random.normal(size=(1, 1, 12)).astype(np.float32)} for _ in range(10)]
    found = harness.run_files(program.files, "host", samples).outputs
    wanted = OnnxRuntime(read_model(path), load(path, shapes)).run(samples)
    for ours, theirs in zip(found, wanted, strict=True):
        close(ours["y"], theirs.outputs[0])
    assert [n.op.kind for n in program.graph.nodes].count("Attention") == 1


MULTI, GROUPED = "MultiHeadAttention", "GroupQueryAttention"
LENGTHS = ["lengths", "total"]
MALFORMED: dict[str, tuple[str, dict[str, int], list[str], str]] = {
    "grouped": (GROUPED, {}, ["q", "k", "v", "past", "", *LENGTHS], "past keys without values"),
    "multi": (MULTI, {}, ["q", "k", "v", "", "", "", "", "past"], "past values without keys"),
    "packed": (
        GROUPED,
        {},
        ["wide", "", "", "", "", *LENGTHS],
        r"2 \+ 2 \+ 2 heads are 50 elements wide",
    ),
    "no heads": (MULTI, {"num_heads": 0}, ["q", "k", "v"], "num_heads is 0, below 1"),
    "heads": (
        MULTI,
        {"num_heads": 3},
        ["q", "k", "v"],
        "num_heads is 3, which does not divide the 16 elements of a step",
    ),
    "heads of keys": (
        MULTI,
        {"num_heads": 4},
        ["q", "past", "past"],
        "4, and keys or values have 2 heads",
    ),
    "groups": (
        GROUPED,
        {"num_heads": 4, "kv_num_heads": 3},
        ["q", "k", "v", "", "", *LENGTHS],
        "kv_num_heads is 3, which does not divide num_heads, 4",
    ),
    "heads of groups": (
        GROUPED,
        {"num_heads": 3, "kv_num_heads": 3},
        ["q", "k", "v", "", "", *LENGTHS],
        "num_heads is 3, which does not divide the 16 elements",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_past_of_one_and_heads_that_do_not_fit_are_refused(name: str, tmp_path: Path) -> None:
    kind, given, names, words = MALFORMED[name]
    shapes = {"q": (1, 1, 16), "k": (1, 1, 16), "v": (1, 1, 16), "past": (1, 2, 6, 8), "wide": (1, 1, 50)}
    attributes: dict[str, Any] = {"num_heads": 2} | ({} if kind == MULTI else {"kv_num_heads": 2}) | given
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(kind, names, ["y"], domain="com.microsoft", **attributes)],
        "malformed",
        [value(n, TensorProto.FLOAT, shape) for n, shape in shapes.items() if n in names],
        [value("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.array([5], np.int32), "lengths"),
            numpy_helper.from_array(np.array(6, np.int32), "total"),
        ],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "malformed.onnx")
    with pytest.raises(ModelError, match=words):
        compile_model(tmp_path / "malformed.onnx", Options("net", "host"))
