# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Long loops that are no recurrent layers are loops in C: equal to the references, as small as short ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.support import loop_models as models
from tests.support.interpret import interpret
from tinyml import harness, importers
from tinyml.base.errors import ModelError
from tinyml.cost.estimate import errors_of, estimate_for
from tinyml.ir import DType
from tinyml.ir.text import dump
from tinyml.ir.text_parser import parse
from tinyml.ir.verifier import verify
from tinyml.memory.loops.placed import PlacedLoop
from tinyml.memory.plan import validate_plan
from tinyml.memory.plan.validate import PlanError
from tinyml.memory.select import Selected
from tinyml.pipeline import Options, check_plan, compile_model
from tinyml.reference.session import answers

CHECKED = harness.Options(check_arena=True)
STEPS = 90

MODELS: dict[str, Callable[[int], onnx.ModelProto]] = {
    "scan": models.filter_scan,
    "scan, last part first": lambda n: models.filter_scan(n, scan_input_directions=[1, 0]),
    "scan, last row first": lambda n: models.filter_scan(n, scan_output_directions=[0, 1]),
    "loop": models.counted_loop,
    "loop that ends by its condition": lambda n: models.counted_loop(n, n - 11),
    "nested": lambda n: models.nested_loop(n, n + 50),
    "quantized": models.qdq_scan,
    "on uint8": models.integer_scan,
    "on int8": lambda n: models.integer_scan(n, onnx.TensorProto.INT8),
    "with an If": models.choosing_scan,
    "nested, with a condition": models.settling_scan,
    "with a recurrent layer": models.recurrent_scan,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_long_loop_stays_one(name: str) -> None:
    """numpy and C compute what onnxruntime computes."""
    model = MODELS[name](STEPS)
    graph = importers.read(models.file(model))
    verify(graph, "import")
    assert "Loop" in [node.op.kind for node in graph.nodes]
    sample = models.sample(model)
    wanted = dict(zip((v.name for v in model.graph.output), answers(model, sample), strict=True))
    found = interpret(graph, sample)
    compiled = compile_model(models.file(model), Options(target="host"))
    check_plan(compiled)
    (run,) = harness.run_files(compiled.files, "host", [sample], options=CHECKED).outputs
    for output, array in wanted.items():
        np.testing.assert_allclose(found[output], array, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(run[output], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_layers_of_a_body_have_a_barrier_behind_them(name: str) -> None:
    """Tensors of several types share the scratch memory, as those of a model share the arena (tinyml.h)."""
    compiled = compile_model(models.file(MODELS[name](STEPS)), Options(target="cortex-m4"))
    text = compiled.files["loops.c"]
    inside = sum(len(list(op.working)) for op in loops_in(compiled.selected))
    calls = re.findall(r"^\t+(?:TINYML_INNER_LAYER\((?:status = )?)?loops_\w+\(", text, re.MULTILINE)
    assert len(calls) == inside
    assert all("TINYML_INNER_LAYER" in call for call in calls)


def loops_in(selected: Iterable[Selected]) -> Iterator[PlacedLoop]:
    for one in selected:
        if isinstance(one.layer.op, PlacedLoop):
            yield one.layer.op
            yield from loops_in(one.layer.op.selected)


@pytest.mark.parametrize("name", MODELS)
def test_the_code_does_not_grow_with_the_steps(name: str) -> None:
    """C of 30 and of 1,000 steps differs in numbers alone, and there are as many layers."""
    compiled = [compile_model(models.file(MODELS[name](steps)), Options(target="cortex-m4")) for steps in FEW]
    few, many = (one.files["loops.c"] for one in compiled)
    assert few.count("\n") == many.count("\n")
    assert len(compiled[0].selected) == len(compiled[1].selected)
    assert compiled[1].summary["weights_bytes"] == compiled[0].summary["weights_bytes"]


def test_a_quantized_loop_carries_integers() -> None:
    """Its conversions are outside, so that each runs once."""
    compiled = compile_model(models.file(models.qdq_scan(STEPS)), Options(target="cortex-m4"))
    (loop,) = (one.layer for one in compiled.selected if one.layer.op.kind == "Loop")
    assert isinstance(loop.op, PlacedLoop)
    assert {type_.dtype for type_ in (*loop.op.operand_types(), *loop.op.infer(()))} == {DType.INT8}
    assert {node.op.kind for node in loop.op.body.nodes} == {"Dense", "Binary", "Reshape"}


FEW = (30, 1000)


def test_a_bound_of_a_loop_in_a_loop() -> None:
    """The name of the inner one is known, although the body is read on trial."""
    sample = {**models.sample(models.settling_scan(STEPS)), "h0": np.ones((1, models.WIDTH), np.float32)}
    file = models.file(models.settling_scan(STEPS))
    wanted = interpret(importers.read(file), sample)
    found = interpret(importers.read(file, bounds={"inner": 49}), sample)
    np.testing.assert_array_equal(found["rows"], wanted["rows"])
    with pytest.raises(ModelError, match="more steps than its bound, 1"):
        interpret(importers.read(file, bounds={"inner": 1}), sample)


def test_a_short_loop_is_unrolled() -> None:
    graph = importers.read(models.file(models.filter_scan(5)))
    assert "Loop" not in [node.op.kind for node in graph.nodes]


def test_the_text_form_is_read_again() -> None:
    """A graph inside an operator, and one inside that."""
    text = dump(importers.read(models.file(models.nested_loop(STEPS, STEPS))))
    again = parse(text)
    verify(again, "the text")
    assert dump(again) == text
    with pytest.raises(ModelError, match="no line `end`"):
        parse("\n".join(line for line in text.splitlines() if line.strip() != "end"))


def test_the_verifier_looks_inside() -> None:
    graph = importers.read(models.file(models.filter_scan(STEPS)))
    (place,) = (i for i, node in enumerate(graph.nodes) if node.op.kind == "Loop")
    node = graph.nodes[place]
    body = node.op.inner_graph
    broken = replace(body, nodes=body.nodes[1:])
    nodes = list(graph.nodes)
    nodes[place] = replace(node, op=node.op.with_inner_graph(broken))
    with pytest.raises(AssertionError, match=r"inside Loop .*reads .* before it is computed"):
        verify(replace(graph, nodes=tuple(nodes)), "a test")


def test_what_the_body_needs_is_checked() -> None:
    """A loop that gets another type than its body declares is refused by the verifier."""
    graph = importers.read(models.file(models.counted_loop(STEPS)))
    longer = replace(graph.tensors["x"], shape=(STEPS, models.WIDTH + 1))
    with pytest.raises(AssertionError, match=r"Loop .*have the types that the body declares"):
        verify(replace(graph, tensors={**graph.tensors, "x": longer}), "a test")


def test_plans_of_bodies_are_checked() -> None:
    """The validator refuses a body in which a state is overwritten before its last reader."""
    compiled = compile_model(models.file(models.filter_scan(STEPS)), Options(target="cortex-m4"))
    (loop,) = (one.layer.op for one in compiled.selected if one.layer.op.kind == "Loop")
    assert isinstance(loop, PlacedLoop)
    validate_plan(loop.body, loop.selected, loop.plan)
    first, second = (loop.plan.places[state.tensor] for state in loop.body.states)
    places = {name: first if place == second else place for name, place in loop.plan.places.items()}
    with pytest.raises(PlanError):
        validate_plan(loop.body, loop.selected, replace(loop.plan, places=places))


def test_estimates_count_every_turn() -> None:
    """Ten times the steps are about ten times the instructions; how far that is off is not known."""
    found = []
    for steps in (100, 1000):
        compiled = compile_model(models.file(models.filter_scan(steps)), Options(target="cortex-m4"))
        estimate = estimate_for(compiled)
        assert estimate is not None
        assert not estimate.is_sure
        (step,) = (i for i, one in enumerate(compiled.selected) if one.layer.op.kind == "Loop")
        found.append((estimate.layers[step], estimate.code_bytes, compiled.summary["macs"]))
        assert "loop of layers" in errors_of(compiled)
    (few, code, macs), (many, more_code, more_macs) = found
    assert 9 < many / few < 11
    assert code == more_code
    assert more_macs == 10 * macs


def test_messages_name_a_scan_without_a_name() -> None:
    """As Netron shows it: by its first output."""
    model = models.gated_scan(3)
    scan = model.graph.node[0]
    scan.name = ""
    scan.input.append("others")
    model.graph.input.append(onnx.helper.make_tensor_value_info("others", onnx.TensorProto.FLOAT, (2, 1)))
    attributes = {a.name: a for a in scan.attribute}
    attributes["num_scan_inputs"].i += 1
    attributes["body"].g.input.append(onnx.helper.make_tensor_value_info("o", onnx.TensorProto.FLOAT, (1,)))
    with pytest.raises(ModelError, match="Scan node 'hn': its sequences have 3, 2 steps, not one length"):
        importers.read(models.file(model))
