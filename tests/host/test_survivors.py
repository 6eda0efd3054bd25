# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults that the suite once did not notice; tools/mutate.py has the others with their tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.interpret import interpret
from tests.support.sketch import Sketch
from tinyml.base import c
from tinyml.cores.targets import find_target
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Quant, State
from tinyml.memory.bands.chains import Neighbours
from tinyml.memory.plan.storage import Group, _aligned, _copied
from tinyml.memory.schedule import _acyclic, _freed, _model, _Step
from tinyml.memory.select import select
from tinyml.ops.concat import Concat
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.kernel import Table, Tables
from tinyml.passes._channel_ranges import analyse, is_channelwise
from tinyml.passes._reshape_axes import carried
from tinyml.passes.fuse_pad import fuse_pad
from tinyml.passes.fuse_qdq import _same_constant
from tinyml.pipeline import LIBRARIES, Options, compile_graph


@pytest.mark.parametrize("name", ["a */ b", "*//*", "/* a", "**//", 'a " b \\', "\u00e4*/\n"])
def test_names_cannot_end_a_comment(name: str) -> None:
    assert "*/" not in c.printable(name)
    assert "/*" not in c.printable(name)


def test_a_model_whose_names_end_comments_compiles() -> None:
    sketch = Sketch()
    sketch.build.scope = "layer */ int x; /*"
    x = sketch.input((4,), DType.FLOAT32)
    y = sketch.build.add1(Unary("abs"), [x])
    graph = sketch.graph(y)
    files = compile_graph(
        graph, "net", Provenance("a */ b.onnx", "0" * 64, "shape */=1"), Options(target="host")
    ).files
    sample = {x.name: np.array([-1, 2, -3, 4], np.float32)}
    outcome = run_batch([Item("net", files, [sample])])["net"]
    assert not outcome.failure
    np.testing.assert_array_equal(outcome.outputs[0][y.name], [1, 2, 3, 4])


def test_equal_bytes_of_different_types_are_different_tables() -> None:
    tables = Tables()
    ones = tables.share(Table("a", np.full(4, -1, np.int8)))
    assert tables.share(Table("b", np.full(4, -1, np.int8))) is ones
    assert tables.share(Table("c", np.full(1, -1, np.int32))) is not ones
    assert tables.share(Table("d", np.full(4, 255, np.uint8))) is not ones
    assert [table.name for table in tables] == ["a", "c", "d"]


def read_twice() -> Graph:
    """a is an operand of the layer after it twice."""
    sketch = Sketch()
    x = sketch.input((1, 6, 6, 2), DType.FLOAT32)
    a = sketch.add(Unary("abs"), x)
    y = sketch.add(Binary("mul"), a, a)
    return sketch.graph(sketch.add(Unary("sqrt"), y))


def test_a_band_does_not_swallow_a_tensor_that_is_read_twice() -> None:
    graph = read_twice()
    near = Neighbours(graph)
    twice, once = graph.nodes[0].outputs[0], graph.nodes[1].outputs[0]
    assert near.pair(twice) is None
    assert near.pair(once) == (1, 2)
    assert near.pair(graph.outputs[0]) is None
    sample = {graph.inputs[0]: np.linspace(-2, 2, 72, dtype=np.float32).reshape(1, 6, 6, 2)}
    files = compile_graph(graph, "net", Provenance("net", "0" * 64, ""), Options(target="host")).files
    outcome = run_batch([Item("net", files, [sample])])["net"]
    np.testing.assert_allclose(
        outcome.outputs[0][graph.outputs[0]], interpret(graph, sample)[graph.outputs[0]], rtol=1e-6
    )


def test_the_schedule_does_not_free_outputs() -> None:
    """An output is needed after the last layer that reads it."""
    sketch = Sketch()
    x = sketch.input((64,), DType.FLOAT32)
    a = sketch.add(Unary("abs"), x)
    b = sketch.add(Binary("add"), a, x)
    graph = sketch.graph(a, b)
    steps, memories = _model(graph, select(graph, find_target("host"), LIBRARIES["portable"]))
    everything = (1 << len(steps)) - 1
    freed = _freed(steps[1], memories, 1, everything)
    assert freed == sum(m.bytes for m in memories if not m.kept)
    assert sum(m.bytes for m in memories if m.kept) >= a.bytes + b.bytes


def group(start: int, alignment: int) -> Group:
    return Group({"t": start}, start, start + 8, alignment, [(0, "t")])


@pytest.mark.parametrize(
    "a,b,shift,allowed",
    [
        (group(0, 4), group(0, 1), 3, True),  # bytes after words
        (group(0, 1), group(0, 4), 4, True),
        (group(0, 1), group(0, 4), 3, False),  # words at an odd place
        (group(0, 4), group(0, 1), -3, False),  # bytes before words move the words
        (group(0, 4), group(0, 1), -8, True),
        (group(0, 2), group(0, 4), -2, True),
        (group(0, 4), group(0, 2), -2, False),
        (group(-4, 4), group(0, 4), 4, True),
    ],
)
def test_words_stay_aligned_in_a_group(a: Group, b: Group, shift: int, allowed: bool) -> None:
    assert _aligned(a, b, shift) == allowed


def test_an_operand_used_twice_is_copied() -> None:
    sketch = Sketch()
    x = sketch.input((4,), DType.FLOAT32)
    a, b = sketch.add(Unary("abs"), x), sketch.add(Unary("sqrt"), x)
    twice, once = sketch.add(Concat(0), a, a), sketch.add(Concat(0), a, b)
    constant = sketch.constant(np.ones(4))
    graph = sketch.graph(twice, once, sketch.add(Concat(0), constant, constant, x))
    assert _copied([*graph.layers()]) == {(a.name, twice.name)}


def test_comments_show_all_operands_of_a_layer() -> None:
    sketch = Sketch()
    x, y = sketch.input((2, 3), DType.FLOAT32), sketch.input((3,), DType.FLOAT32)
    graph = sketch.graph(sketch.add(Binary("add"), x, y))
    files = compile_graph(graph, "net", Provenance("net", "0" * 64, ""), Options(target="host")).files
    assert "2x3 + 3 -> 2x3" in files["net.c"]
    assert "arena 0..24, 24..36 -> 0..24" in files["net.c"]


@pytest.mark.parametrize("new", [(1, 12, 2), (1, 3, 8), (3, 4, 2), (1, 24), (12, 1, 2), (1, 3, 2, 2, 2)])
def test_a_transpose_is_carried_past_a_reshape_that_joins_neighbours(new: tuple[int, ...]) -> None:
    x = np.arange(24).reshape(1, 2, 3, 4)
    perm = (0, 2, 3, 1)
    wanted = x.transpose(perm).reshape(new)
    found = carried(x.shape, perm, new)
    assert (found is None) == (new in ((1, 3, 8), (1, 24)))  # these join axes that x has apart
    if found is not None:
        shape, turned = found
        np.testing.assert_array_equal(x.reshape(shape).transpose(turned), wanted)


def test_an_order_in_which_nodes_wait_for_each_other_is_none() -> None:
    steps = [_Step(0, (), ()), _Step(0b001, (), ()), _Step(0b010, (), ())]
    assert _acyclic(steps, [(0, 2)])
    assert not _acyclic(steps, [(2, 0)])  # the first would have to run after the last, which needs it


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1), (1, 1, 1, 4), (1, 2, 2, 4)])
def test_channels_of_a_broadcast_operand_are_not_those_of_the_output(shape: tuple[int, ...]) -> None:
    """With one value for all channels, an operand has no channel of its own that could be constant."""
    sketch = Sketch()
    x, other = sketch.input((1, 2, 2, 4), DType.FLOAT32), sketch.input(shape, DType.FLOAT32)
    y = sketch.add(Binary("add"), x, other)
    (layer,) = sketch.graph(y).layers()
    assert is_channelwise(layer) == (shape[-1:] == (4,))
    assert set(analyse(sketch.graph(y))) >= {x.name, y.name}


def test_the_range_of_a_sum_is_that_of_its_largest_and_smallest_terms() -> None:
    """3 * x0 - 5 * x1 + 1 is in -1018..1022 and 4 * x0 + x1 - 2 in -642..633, in steps of 10."""
    sketch = Sketch()
    one, ten = Quant.per_tensor(1.0, 0), Quant.per_tensor(10.0, 0)
    x = sketch.input((1, 1, 1, 2), DType.INT8, one)
    weights = sketch.constant(np.array([[3, -5], [4, 1]]).reshape(2, 1, 1, 2), one, "int8")
    y = sketch.add(Conv(), x, weights, sketch.constant([1, -2], one, "int32"), quant=ten)
    found = analyse(sketch.graph(y))[y.name]
    assert found.low.tolist() == [-102, -64]
    assert found.high.tolist() == [102, 63]


@pytest.mark.parametrize(
    "initial, flag",
    [(None, False), ([0, 0], False), ([0, 1], True), ([2, 2], True), ([-0.0, -0.0], True), ([0, -0.0], True)],
)
def test_only_states_that_do_not_start_at_zero_need_a_reset_before_the_first_run(
    initial: list[float] | None, flag: bool
) -> None:
    sketch = Sketch()
    x = sketch.input((2,), DType.FLOAT32)
    old = sketch.build.tensor("total", x.type)
    new = sketch.add(Binary("add"), old, x)
    first = None if initial is None else np.array(initial, np.float32)
    graph = replace(sketch.graph(sketch.add(Unary("abs"), new)), states=(State("total", new.name, first),))
    files = compile_graph(graph, "net", Provenance("net", "0" * 64, ""), Options(target="host")).files
    assert ("net_started" in files["net.c"]) is flag
    same = initial is None or str(initial[0]) == str(initial[1])
    assert ("net_state0_initial" in files["net.c"]) is not same


def test_passes_leave_a_node_without_operands_alone() -> None:
    sketch = Sketch()
    x = sketch.input((2,), DType.FLOAT32)
    graph = sketch.graph(sketch.add(Unary("abs"), x))
    source = replace(graph, nodes=(replace(graph.nodes[0], inputs=()),))
    assert fuse_pad(source).nodes == source.nodes


def test_constants_of_one_type_and_name_are_the_same_only_with_equal_values() -> None:
    a, b = (Sketch().constant([1, value]) for value in (2, 3))
    assert _same_constant(a, a)
    assert not _same_constant(a, b)
