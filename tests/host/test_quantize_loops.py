# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops that stay loops have int8 bodies after `quantize`, and C computes what onnxruntime computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support import loop_models as models
from tinyml import harness, importers
from tinyml.base.errors import ConfigError, GoalNotReachedError
from tinyml.importers import ModelFile
from tinyml.ir import Array, DType
from tinyml.memory.loops.placed import PlacedLoop
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.export import to_onnx
from tinyml.quantize.loop_results import kept_scales
from tinyml.quantize.prepare import prepare
from tinyml.reference.session import answers
from tinyml.settings.quantize_request import Goal, Request

pytest.importorskip("onnxruntime")

CHECKED = harness.Options(check_arena=True)
STEPS = 70


def slow(model: onnx.ModelProto, count: int = 12) -> list[dict[str, Array]]:
    """Samples whose sequences change slowly, as those of sensors do."""
    random = np.random.default_rng(3)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return [
        {
            name: np.cumsum(random.normal(0, 0.3, shape), 0, np.float32).reshape(shape)
            for name, shape in shapes.items()
        }
        for _ in range(count)
    ]


def quantized(model: onnx.ModelProto, folder: Path, **choices: Any) -> Quantized:
    samples = slow(model)
    stacked: dict[str, Any] = {name: np.stack([one[name] for one in samples]) for name in samples[0]}
    np.savez(folder / "data.npz", **stacked)
    return quantize(models.file(model), Request(folder / "data.npz", method="minmax", **choices))


def compiled(result: Quantized) -> Compiled:
    file = ModelFile(Path("loops.onnx"), result.model.SerializeToString())
    return compile_model(file, Options(target="host"))


def runs_of(found: Compiled, samples: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
    return list(harness.run_files(found.files, "host", samples, options=CHECKED).outputs)


def kinds(result: Quantized) -> dict[str, str]:
    return {layer.name: layer.kind for layer in result.report.layers}


def last_kind(result: Quantized) -> str:
    return result.report.layers[-1].kind


def loops_of(found: Compiled) -> list[PlacedLoop]:
    return [one.layer.op for one in found.selected if isinstance(one.layer.op, PlacedLoop)]


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Quantized:
    return quantized(models.gated_scan(STEPS), tmp_path_factory.mktemp("gated"))


def test_the_body_is_int8_once(gated: Quantized) -> None:
    """Each layer is in the report, and the loop carries integers."""
    assert [node.op_type for node in gated.model.graph.node].count("Scan") == 1
    assert {kinds(gated)[name] for name in ("cell", "a", "b", "both", "gate", "candidate", "h2")} == {"int8"}
    (loop,) = loops_of(compiled(gated))
    assert {type_.dtype for type_ in (*loop.operand_types(), *loop.infer(()))} == {DType.INT8}
    assert {one.layer.outputs[0].dtype for one in loop.working} <= {DType.INT8, DType.INT16}


def test_c_equals_onnxruntime(gated: Quantized) -> None:
    samples = slow(models.gated_scan(STEPS))
    for sample, run in zip(samples, runs_of(compiled(gated), samples), strict=True):
        (wanted,) = answers(gated.model, sample)
        np.testing.assert_allclose(run["y"], wanted, rtol=0, atol=1e-6)


def test_the_loss_is_that_of_the_whole_model(gated: Quantized) -> None:
    """Figures of the report are measured against the model in float, the loop included."""
    model = models.gated_scan(STEPS)
    wanted = np.stack([answers(model, sample)[0] for sample in slow(model)])
    found = np.stack([answers(gated.model, sample)[0] for sample in slow(model)])
    count = len(wanted)
    energy = np.square(wanted - wanted.mean(0)).sum() * count / (count - 1)
    noise = np.square(found - wanted).sum()
    assert gated.report.decibels == pytest.approx(10 * np.log10(energy / noise), abs=0.1)
    assert gated.report.decibels > 25
    (loop,) = (layer for layer in gated.report.layers if layer.name == "cell")
    assert loop.decibels is not None
    assert loop.decibels < gated.report.decibels + 6  # most of the loss is in the loop


def test_weights_are_counted_inside(gated: Quantized) -> None:
    """Int8 weights, one scale for each filter, and biases; a constant in float is not kept."""
    assert gated.report.int8_bytes < 0.75 * gated.report.float_bytes
    assert "w" not in {tensor.name for tensor in gated.model.graph.initializer}


@pytest.mark.parametrize(
    "make",
    [
        models.settling_scan,
        lambda steps: models.nested_loop(steps, steps),
        lambda steps: models.filter_scan(steps, scan_input_directions=[1, 0]),
        lambda steps: models.filter_scan(steps, scan_output_directions=[0, 1]),
        models.counted_loop,
        lambda steps: models.settling_loop(steps, begins=True),
        models.picking_loop,
    ],
    ids=[
        "condition inside",
        "nested",
        "last part first",
        "last row first",
        "rows by number",
        "asking",
        "picks",
    ],
)
def test_other_loops(make: Callable[[int], onnx.ModelProto], tmp_path: Path) -> None:
    """Directions, captured values, rows, loops in loops and conditions stay what they are."""
    model = make(STEPS)
    result = quantized(model, tmp_path)
    assert "int8" in kinds(result).values()
    samples = slow(model, 3)
    for sample, run in zip(samples, runs_of(compiled(result), samples), strict=True):
        for value, wanted in zip(result.model.graph.output, answers(result.model, sample), strict=True):
            close = np.isclose(run[value.name], wanted, rtol=1e-5, atol=1e-6)
            assert close.mean() > 0.97, value.name  # the rest are ties of float32


def test_a_loop_may_stay_float(tmp_path: Path) -> None:
    result = quantized(models.gated_scan(STEPS), tmp_path, keep_float=("cell",))
    assert (kinds(result)["cell"], last_kind(result)) == ("float", "int8")
    assert result.report.layers[0].why == "--keep-float names it"
    assert "a" not in kinds(result)
    (loop,) = loops_of(compiled(result))
    assert {type_.dtype for type_ in loop.operand_types()} == {DType.FLOAT32}


def test_a_layer_of_a_body_may_have_another_type(tmp_path: Path) -> None:
    plain = quantized(models.gated_scan(STEPS), tmp_path)
    result = quantized(models.gated_scan(STEPS), tmp_path, keep_float=("new",), int16=("h2",))
    found = kinds(result)
    assert (found["new"], found["h2"], last_kind(result)) == ("float", "int16", "int16")  # the last reads h2
    assert result.report.decibels > plain.report.decibels + 1
    samples = slow(models.gated_scan(STEPS), 3)
    for sample, run in zip(samples, runs_of(compiled(result), samples), strict=True):
        (wanted,) = answers(result.model, sample)
        np.testing.assert_allclose(run["y"], wanted, rtol=0, atol=0.02)


def test_float16_weights_of_a_body(tmp_path: Path) -> None:
    result = quantized(models.gated_scan(STEPS), tmp_path, weights="float16")
    assert {kinds(result)[name] for name in ("cell", "a", "b")} == {"float16 weights"}
    assert result.report.decibels > 50
    samples = slow(models.gated_scan(STEPS), 3)
    for sample, run in zip(samples, runs_of(compiled(result), samples), strict=True):
        (wanted,) = answers(result.model, sample)
        np.testing.assert_allclose(run["y"], wanted, rtol=1e-5, atol=1e-6)


def test_an_unknown_layer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no layer called 'cel'"):
        quantized(models.gated_scan(STEPS), tmp_path, keep_float=("cel",))


def test_a_model_that_keeps_state(tmp_path: Path) -> None:
    """The first state of its loop is what the previous run left."""
    model = models.gated_scan(STEPS)
    stored = next(tensor for tensor in model.graph.initializer if tensor.name == "h0")
    model.graph.initializer.remove(stored)
    model.graph.input.append(models.value("h0", 1, 8))
    model.graph.output.append(models.value("hn", 1, 8))
    model.metadata_props.add(key="tinyml.states", value='{"h0": "hn"}')
    samples = [{"xs": one["xs"]} for one in slow(models.gated_scan(STEPS))]
    np.savez(tmp_path / "data.npz", xs=np.stack([one["xs"] for one in samples]))
    result = quantize(models.file(model), Request(tmp_path / "data.npz", method="minmax"))
    assert kinds(result)["h2"] == "int8"
    assert result.report.decibels > 15
    plain, memory = compile_model(models.file(model), Options(target="host")), compiled(result)
    in_float, in_int8 = (np.stack([r["y"] for r in runs_of(c, samples)]) for c in (plain, memory))
    assert np.square(in_int8 - in_float).sum() < 0.05 * np.square(in_float - in_float.mean(0)).sum()


def test_operators_that_cannot_be_written(tmp_path: Path) -> None:
    """The loop stays as it is in the file, in float."""
    model = models.gated_scan(STEPS)
    body = model.graph.node[0].attribute[0].g
    body.node[0].name = body.node[0].output[0] = "a0"
    body.node.insert(1, models.node("IsInf", "a0", "far"))
    body.node.insert(2, models.node("Where", "far one a0", "a"))
    result = quantized(model, tmp_path)
    assert (kinds(result)["cell"], last_kind(result)) == ("float", "int8")
    model.graph.node.pop()
    del model.graph.output[:]
    model.graph.output.append(models.value("hn", 1, 8))
    with pytest.raises(ConfigError, match="what it computes in loops stays float"):
        quantized(model, tmp_path)


def test_what_can_be_written_step_by_step(tmp_path: Path) -> None:
    """The number of a step decides, which the compiler knows once the loop is unrolled."""
    body = onnx.helper.make_graph(
        [
            models.node("Cast", "i", "time", to=models.FLOAT),
            models.node("IsInf", "time", "late"),
            models.node("MatMul", "h w", "turned"),
            models.node("Where", "late h turned", "kept"),
            models.node("Add", "kept h", "sum"),
            models.node("Softsign", "sum", "h2"),
            models.node("Identity", "go", "on"),
        ],
        "body",
        [
            models.value("i", kind=models.INT64),
            models.value("go", kind=models.BOOL),
            models.value("h", 1, models.WIDTH),
        ],
        [models.value("on", kind=models.BOOL), models.value("h2", 1, models.WIDTH)],
    )
    loop = onnx.helper.make_node("Loop", ["most", "", "h0"], ["y"], "loop", body=body)
    constants = {
        "w": models.weights(models.WIDTH, models.WIDTH),
        "most": np.asarray(40),
    }
    ends = [models.value("h0", 1, models.WIDTH)], [models.value("y", 1, models.WIDTH)]
    result = quantized(models.whole(loop, *ends, constants), tmp_path)
    assert {layer.op_type for layer in result.report.layers} >= {"Gemm", "Softsign"}
    assert "Loop" not in {layer.op_type for layer in result.report.layers}


@pytest.mark.parametrize("name", ["gated", "rows", "nested", "settling"])
def test_a_loop_is_written_as_onnx(name: str) -> None:
    """In the one form that the quantiser reads; it computes the same."""
    model = {
        "gated": models.gated_scan(STEPS),
        "rows": models.gated_scan(STEPS, rows=True),
        "nested": models.nested_loop(STEPS, STEPS),
        "settling": models.settling_loop(STEPS, begins=True, rows=True),
    }[name]
    written = to_onnx(importers.read(models.file(model)))
    for sample in slow(model, 3):
        wanted = answers(model, sample)
        for found, array in zip(answers(written, sample), wanted, strict=False):
            most = found[: len(array)] if array.ndim else found  # rows have room for all steps
            np.testing.assert_allclose(most, array, rtol=1e-5, atol=1e-5)


def test_int8_outputs_that_a_loop_reads_stay_real(tmp_path: Path) -> None:
    """The file would hold integers where the body expects numbers."""
    model = models.gated_scan(STEPS)
    kept = [constant for constant in model.graph.initializer if constant.name != "offset"]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.node.insert(0, models.node("Mul", "bias bias", "offset"))
    model.graph.input.append(models.value("bias", 1, 8))
    model.graph.output.append(models.value("offset", 1, 8))
    found = compiled(quantized(model, tmp_path, io="int8"))
    types = {name: found.graph.tensors[name].dtype for name in found.graph.outputs}
    assert types == {"y": DType.INT8, "offset": DType.FLOAT32}


def test_counters_keep_their_type_in_the_report(tmp_path: Path) -> None:
    """They are integers of the file, not numbers that became int8."""
    layers = quantized(models.counted_loop(STEPS, last=STEPS), tmp_path).report.layers
    assert ("Add", "int64") in {(layer.op_type, layer.kind) for layer in layers}


def test_a_named_loop_has_int16_throughout(tmp_path: Path) -> None:
    result = quantized(models.gated_scan(STEPS), tmp_path, int16=("cell",))
    assert {layer.kind for layer in result.report.layers} == {"int16"}  # what reads its integers, too
    (sample,) = slow(models.gated_scan(STEPS), 1)
    (found,) = runs_of(compiled(result), [sample])
    (wanted,) = answers(result.model, sample)
    np.testing.assert_allclose(found["y"], wanted, atol=0.02)


def with_readers(*readers: onnx.NodeProto, shape: Sequence[int], last: int | None = None) -> onnx.ModelProto:
    """A loop whose last states, y, have a smaller range than those of all turns, rows."""
    model = models.counted_loop(STEPS, last)
    model.graph.node.extend(readers)
    model.graph.initializer.append(numpy_helper.from_array(models.weights(models.WIDTH, 3), "v"))
    del model.graph.output[:]
    model.graph.output.append(models.value("z", *shape))
    return model


def readers_of_loop(found: Compiled) -> set[str]:
    (loop,) = (one.layer for one in found.selected if isinstance(one.layer.op, PlacedLoop))
    given = {tensor.name for tensor in loop.outputs}
    inputs = [({t.name for t in one.layer.inputs if t is not None}, one.layer) for one in found.selected]
    return {layer.op.kind for names, layer in inputs if names & given}


READERS = {
    "last state": ([models.node("MatMul", "y v", "z")], (1, 3)),
    "all turns": ([models.node("MatMul", "rows v", "z")], (STEPS, 1, 3)),
    "moved": (
        [models.node("Transpose", "rows", "t", perm=[1, 0, 2]), models.node("MatMul", "t v", "z")],
        (1, STEPS, 3),
    ),
    "two readers": (
        [
            models.node("MatMul", "y v", "a"),
            models.node("Mul", "y y", "s"),
            models.node("MatMul", "s v", "b"),
            models.node("Add", "a b", "z"),
        ],
        (1, 3),
    ),
}


@pytest.mark.parametrize("int16", [False, True], ids=["int8", "int16"])
@pytest.mark.parametrize("name", READERS)
def test_results_of_a_loop_are_not_rounded_again(name: str, int16: bool, tmp_path: Path) -> None:
    """What reads them gets the integers with which the body ends, of their type."""
    readers, shape = READERS[name]
    model = with_readers(*readers, shape=shape)
    result = quantized(model, tmp_path, int16=("loop",) if int16 else ())
    found = compiled(result)
    assert readers_of_loop(found) <= {"Dense", "Transpose", "Reshape", "Binary"}
    assert kinds(result)["loop"] == ("int16, int8" if int16 else "int8")  # Softsign has no int16
    samples = slow(model, 3)
    for sample, run in zip(samples, runs_of(found, samples), strict=True):
        np.testing.assert_allclose(run["z"], answers(result.model, sample)[0], rtol=0, atol=5e-5)


def kept(
    limits: tuple[float, float], reader: str = "Concat", condition: str = "", last: float = 0.9, bits: int = 8
) -> set[str]:
    """Tensors with the scale of a loop whose states reach from -1 to 1, if x has these ``limits``."""
    half = 1 << (bits - 1)
    constants = [
        numpy_helper.from_array(np.float32(1 / half), "scale"),
        numpy_helper.from_array(np.asarray(0, f"int{bits}"), "zero"),
    ]
    body = onnx.helper.make_graph(
        [models.node("DequantizeLinear", "q scale zero", "h2"), models.node("Identity", "go", "on")],
        "body",
        [models.value("i", kind=models.INT64), models.value("go", kind=models.BOOL), models.value("h", 1, 4)],
        [models.value("on", kind=models.BOOL), models.value("h2", 1, 4)],
    )
    loop = onnx.helper.make_node("Loop", ["most", condition, "x"], ["y"], "loop", body=body)
    joined = models.node(reader, "y x", "z")
    graph = onnx.helper.make_graph([loop, joined], "loops", [], [models.value("z", 2, 4)], constants)
    ranges = {"x": limits, "y": (-last, last), "z": (min(-last, limits[0]), max(last, limits[1]))}
    return {*kept_scales(onnx.helper.make_model(graph), ranges, (), ())}


def test_who_shares_the_scale_of_a_loop() -> None:
    """Others do if they fit and lose little by it."""
    everything = {"x", "y", "z"}
    assert kept((-1, 0.5)) == everything
    assert kept((-1.2, 0.5)) == set()
    assert kept((-0.1, 0.1)) == kept((-0.1, 0.1), bits=16) == everything
    assert kept((-0.1, 0.1), last=0.2) == set()  # x would have an eighth of its steps
    assert kept((-1.2, 0.5), "Add") == kept((-0.1, 0.1), "Add", last=0.2) == {"y"}


def test_a_loop_that_may_have_no_turn() -> None:
    """It returns the first value of its state, which its scale has to hold too."""
    assert kept((-5, 5), "Add", last=5) == kept((-5, 5), "Add", "asked") == {"y"}
    assert kept((-5, 5), "Add", "asked", last=5) == set()


@pytest.mark.parametrize("decibels,kind", [(20, "int8"), (45, "int16"), (60, "float")])
def test_a_goal_reaches_into_loops(decibels: float, kind: str, tmp_path: Path) -> None:
    """Better types for the layer behind the loop leave 33 dB."""
    result = quantized(models.gated_scan(STEPS), tmp_path, auto=Goal(decibels=decibels))
    cell, *body, _ = result.report.layers
    assert {layer.kind for layer in (cell, *body)} == {kind}
    assert cell.why == ("--auto needs it" if kind == "float" else "")
    assert result.report.decibels >= decibels


def test_a_goal_that_leaves_nothing_for_integers(tmp_path: Path) -> None:
    model = models.settling_loop(STEPS)
    with pytest.raises(GoalNotReachedError, match="only if loops stay float, and then nothing is int8"):
        quantized(model, tmp_path, auto=Goal(decibels=200))


def test_weights_of_four_bits_do_not_reach_into_loops(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="weights in loops have eight bits"):
        quantized(models.settling_loop(STEPS), tmp_path, weights="int4")


def test_loops_without_a_name_are_called_what_they_are() -> None:
    """Not after an output, with a number; a second one has the number."""
    model = models.gated_scan(STEPS)
    first, second = model.graph.node[0], model.graph.node.add()
    second.CopyFrom(first)
    second.output[0] = "hn_again"
    model.graph.output.append(models.value("hn_again", 1, 8))
    for names in (["scan", "scan_2"], ["cell", "scan"]):
        first.name, second.name = ("", "") if "cell" not in names else ("cell", "")
        written = prepare(models.file(model), {}).model
        assert sorted(node.name for node in written.graph.node if node.op_type == "Scan") == names


def test_misspelt_names_in_loops_have_a_hint(tmp_path: Path) -> None:
    model = models.gated_scan(STEPS)
    inside = model.graph.node[0].attribute[0].g.node[0].output[0]
    for name, hint in ((f"{inside}x", rf"did you mean .*{inside}\b"), ("cells", r"did you mean .*cell\b")):
        with pytest.raises(ConfigError) as raised:
            quantized(model, tmp_path, keep_float=(name,))
        assert re.search(hint, str(raised.value))
