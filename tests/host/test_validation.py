# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Translation validation: what is proved, what is tested, and faults of passes and plans that are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.host.test_quantize_recurrent import INPUTS, KINDS, STEPS, layer
from tests.support.quantizing import saved
from tests.support.small_models import quantize_small
from tinyml.compare.check import Subject, subject
from tinyml.compare.parts import cuts_of
from tinyml.compare.validation import AFFINE, PAIRS, SAME, SELECTED, Part, validate
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Node, Quant, Tensor
from tinyml.ir.interpreter import interpret
from tinyml.memory.plan.validate import PlanError
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.transpose import Transpose
from tinyml.pipeline import Options, check_plan, compile_graph
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
STARTS = {"same": SAME, "affine": AFFINE.partition(":")[0]}


@pytest.fixture(scope="module")
def digits() -> Subject:
    return subject(DIGITS, Options("digits", "cortex-m4"))


def verdicts(parts: list[Part]) -> dict[str, str]:
    return {
        part.layers[-1]: "differs" if not part.fine else "proved" if part.proved else "tested"
        for part in parts
    }


def test_all_layers_of_a_quantised_model_are_proved(digits: Subject) -> None:
    """Also the pool, which selects, and the dense layer, whose weights were put into another order."""
    parts = validate(digits.imported, digits.compiled.graph)
    assert set(verdicts(parts).values()) == {"proved"}
    assert next(part.how for part in parts if part.layers == ("pool",)) == SELECTED
    assert {layer for part in parts for layer in part.layers} == {n.name for n in digits.compiled.graph.nodes}
    hows = [part.how for part in parts if part.proved]
    assert all(any(how.startswith(start) for how in hows) for start in STARTS.values())


def with_constant(graph: Graph, layer: str, operand: int, change: int) -> Graph:
    """A graph whose layer has another constant: the first element is changed."""
    node = next(n for n in graph.nodes if n.name == layer and len(n.inputs) > operand)
    tensor = graph.tensors[node.inputs[operand]]
    values = np.array(tensor.value)
    values.reshape(-1)[0] += change
    return replace(graph, tensors={**graph.tensors, tensor.name: replace(tensor, data=values)})


@pytest.mark.parametrize("layer, operand, change", [("conv2", 1, 8), ("conv2", 2, 20_000), ("dense", 1, 40)])
def test_a_pass_that_changes_a_constant_is_found(
    digits: Subject, layer: str, operand: int, change: int
) -> None:
    """A weight or a bias that is not the one of the file: never proved, and the difference is seen."""
    wrong = with_constant(digits.compiled.graph, layer, operand, change)
    assert verdicts(validate(digits.imported, wrong))[layer] == "differs"


def test_a_small_change_is_not_proved(digits: Subject) -> None:
    """Directed inputs may miss one step of one weight; the coefficients do not."""
    wrong = with_constant(digits.compiled.graph, "conv2", 1, 1)
    assert verdicts(validate(digits.imported, wrong))["conv2"] != "proved"


def test_weights_in_another_order_are_not_proved(digits: Subject) -> None:
    graph = digits.compiled.graph
    node = next(n for n in graph.nodes if n.name == "dense")
    tensor = graph.tensors[node.inputs[1]]
    swapped = replace(tensor, data=np.roll(tensor.value, 1, axis=1))
    wrong = replace(graph, tensors={**graph.tensors, tensor.name: swapped})
    assert verdicts(validate(digits.imported, wrong))["dense"] == "differs"


def test_a_pool_with_another_window_is_not_proved(digits: Subject) -> None:
    graph = digits.compiled.graph
    node = next(n for n in graph.nodes if n.name == "pool")
    changed = replace(node, op=replace(node.op, kernel=(1, 2)))  # type: ignore[call-arg]
    wrong = replace(graph, nodes=tuple(changed if n is node else n for n in graph.nodes))
    assert verdicts(validate(digits.imported, wrong))["pool"] == "differs"


def clamped(unsigned: bool = False) -> Graph:
    """A convolution with limits inside the range of its output, and a sum with what it reads."""
    rng = np.random.default_rng(3)
    w = rng.integers(-127, 128, (2, 3, 3, 2)).astype(np.int8)
    kind, shift = (DType.UINT8, 128) if unsigned else (DType.INT8, 0)
    x, y = Quant.per_tensor(0.02, 5 + shift), Quant.per_tensor(0.05, -20 + shift)
    shape = (1, 6, 6, 2)
    tensors = [
        Tensor("x", shape, kind, x),
        Tensor("w", w.shape, DType.INT8, Quant.per_tensor(0.01, 0), data=w),
        *(Tensor(name, shape, DType.FLOAT32) for name in ("xr", "conv", "limited", "yr", "sum")),
        Tensor("wr", w.shape, DType.FLOAT32),
        Tensor("y", shape, kind, y),
        Tensor("z", shape, kind, y),
    ]
    nodes = (
        Node("dx", Dequantize(), ("x",), ("xr",)),
        Node("dw", Dequantize(), ("w",), ("wr",)),
        Node("conv", Conv(pads=(1, 1, 1, 1)), ("xr", "wr"), ("conv",)),
        Node("clip", Clamp(0.0, 3.0), ("conv",), ("limited",)),
        Node("qy", Quantize(kind, y), ("limited",), ("y",)),
        Node("dy", Dequantize(), ("y",), ("yr",)),
        Node("add", Binary("add"), ("xr", "yr"), ("sum",)),
        Node("qz", Quantize(kind, y), ("sum",), ("z",)),
    )
    return Graph("clamped", {t.name: t for t in tensors}, nodes, ("x",), ("z",))


@pytest.mark.parametrize("unsigned", [False, True])
def test_clamps_and_sums_are_proved(unsigned: bool) -> None:
    """Clamps by their stored limits, sums of two tensors by all pairs, also where uint8 became int8."""
    imported = clamped(unsigned)
    graph = compile_graph(imported, "m", Provenance("m", "0" * 64, ""), Options(target="host")).graph
    parts = validate(imported, graph)
    hows = {part.layers[-1]: part.how for part in parts if part.proved}
    assert hows["conv"].startswith(STARTS["affine"])
    assert hows["add"] == PAIRS
    for limits in ((0.0, 2.9), (0.1, 3.0)):
        nodes = [
            replace(n, op=n.op.limited(*limits) or n.op) if n.op.kind == "Conv" else n for n in graph.nodes
        ]
        wrong = replace(graph, nodes=tuple(nodes))
        assert wrong.nodes != graph.nodes
        assert verdicts(validate(imported, wrong))["conv"] == "differs"


def test_an_offset_that_moved_is_found(digits: Subject) -> None:
    """The plan's validator is part of it: any tensor of the arena, moved over another."""
    compiled = digits.compiled
    check_plan(compiled)
    name = next(node.outputs[0] for node in compiled.graph.nodes if node.name == "conv2")
    place = compiled.plan.places[name]
    for offset in (place.offset + 4, compiled.plan.arena_bytes):
        places = {**compiled.plan.places, name: replace(place, offset=offset)}
        with pytest.raises(PlanError):
            check_plan(replace(compiled, plan=replace(compiled.plan, places=places)))


def test_the_command_says_what_is_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(DIGITS), "--validate", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"proved: conv2: {STARTS['affine']}" in said
    assert f"proved: pool: {SELECTED}" in said
    assert "proved: the memory plan" in said


def recurrent(kind: str, folder: Path, **options: Any) -> Subject:
    """A quantised model with one recurrent layer, whose graph has it on integers."""
    model, _ = layer(kind, **options)
    shape = (STEPS, options.get("batch", 1), INPUTS)
    return subject(saved(quantize_small(model, folder, shape), folder), Options("cell", "host"))


@pytest.mark.parametrize("kind, options", KINDS)
def test_recurrent_layers_are_tested_step_by_step(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Never proved; whole sequences of a float runtime are several steps off, single steps are not."""
    model = recurrent(kind, tmp_path, **options)
    parts = validate(model.imported, model.compiled.graph)
    assert all(part.fine for part in parts)
    (part,) = [part for part in parts if "cell" in "".join(part.layers)]
    assert not part.proved
    assert "step by step from the same states" in part.how or part.how == "12 directed inputs"


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("fault", ["weight", "bias", "reverse", "output"])
def test_faults_of_recurrent_layers_are_found(kind: str, fault: str, tmp_path: Path) -> None:
    """A recurrent weight, a bias, the direction, and the scale after the layer."""
    model = recurrent(kind, tmp_path)
    graph = model.compiled.graph
    node = next(n for n in graph.nodes if n.op.kind == "RecurrentInt8")
    if fault == "reverse":
        changed = replace(node, op=replace(node.op, reverse=True))  # type: ignore[call-arg]
        wrong = replace(graph, nodes=tuple(changed if n is node else n for n in graph.nodes))
    elif fault == "output":
        tensor = graph.tensors[node.outputs[0]]
        assert tensor.quant is not None
        quant = replace(tensor.quant, zero_points=(tensor.quant.zero_point + 2,))
        wrong = replace(graph, tensors={**graph.tensors, tensor.name: replace(tensor, quant=quant)})
    else:
        wrong = with_constant(graph, node.name, *((2, 100) if fault == "weight" else (3, 4096)))
    assert not all(part.fine for part in validate(model.imported, wrong))


@pytest.mark.parametrize("moved", [False, True])
def test_layouts_of_one_shape_are_told_apart_by_values(moved: bool) -> None:
    """Passes call both "/nhwc": what has its channels last, and what came from there and has not."""
    x, t = (Tensor(name, (1, 2, 2), DType.FLOAT32) for name in ("x", "t"))
    imported = Graph("g", {"x": x, "t": t}, (Node("a", Unary("abs"), ("x",), ("t",)),), ("x",), ("t",))
    other = replace(t, name="t/nhwc")
    between = replace(t, name="u")
    first = Node("a", Unary("abs"), ("x",), ("u",))
    last = Node("b", Transpose((0, 2, 1)) if moved else Unary("abs"), ("u",), ("t/nhwc",))
    tensors = {one.name: one for one in (x, between, other)}
    optimised = Graph("g", tensors, (first, last), ("x",), ("t/nhwc",))
    inputs = {"x": np.arange(4, dtype=np.float32).reshape(1, 2, 2)}
    cuts = cuts_of(imported, optimised, inputs, interpret(imported, [inputs])[0])
    assert cuts == {"x": "x", "t/nhwc": "t"}
    assert ("t/nhwc" in cuts.moved) == moved
