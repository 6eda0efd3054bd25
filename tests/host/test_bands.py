# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers in bands of rows: every row is computed once, from available rows, with the same results."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.depth import is_deep
from tests.support.batch import Item, run_batch
from tests.support.chains import FLAT, Chain, join_everything, random_chain
from tinyml import pipeline
from tinyml.cores.targets import Target
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Quant
from tinyml.ir.hook_types import RowWindow
from tinyml.ir.interpreter import interpret
from tinyml.ir.text import dump
from tinyml.memory import placement
from tinyml.memory.bands import join
from tinyml.memory.bands.band_rows import cut
from tinyml.memory.bands.banded import HEIGHT, WIDTH, Banded, calls_in_bands
from tinyml.memory.bands.chains import Choice
from tinyml.memory.bands.join import in_bands
from tinyml.memory.select import Selected
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.pipeline import Options, compile_graph
from tinyml.settings.optimize import Chaining


def random_windows(seed: int) -> list[RowWindow]:
    rng = random.Random(seed)
    rows, windows = rng.randint(8, 40), []
    for _ in range(rng.randint(2, 5)):
        kernel, stride, dilation = rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 2)
        span = (kernel - 1) * dilation + 1
        pad, behind = rng.randint(0, span - 1), rng.randint(0, span - 1)
        if rows + pad + behind < span:
            break
        out = (rows + pad + behind - span) // stride + 1
        windows.append(RowWindow(kernel, stride, dilation, pad, rows, out))
        rows = out
    return windows


@pytest.mark.parametrize("gently", [False, True])
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_every_row_is_computed_once_from_available_rows(seed: int, rows: int, gently: bool) -> None:
    """Buffers hold the numbers of rows instead of rows."""
    windows = random_windows(seed)
    found = cut(windows, rows, gently=gently)
    if found is None:
        return  # a window that sees nothing but padding
    buffers = [[-1] * size for size in found.buffer_rows]
    whole = list(range(windows[0].in_rows))
    result: list[int] = []
    done = [0] * len(windows)
    for band in found.bands:
        for i, (window, stage) in enumerate(zip(windows, band.stages, strict=True)):
            if not stage.rows:
                continue
            source = buffers[i - 1] if i else whole
            first, end = window.read(done[i], done[i] + stage.rows)
            seen = source[stage.source : stage.source + stage.source_rows]
            assert seen == list(range(first + stage.pad_top, end - stage.pad_bottom))
            assert stage.pad_top == max(-first, 0)
            made = list(range(done[i], done[i] + stage.rows))
            if i == len(windows) - 1:
                assert stage.into == len(result)
                result += made
            else:
                buffers[i][stage.into : stage.into + stage.rows] = made
                assert len(buffers[i]) == found.buffer_rows[i]
            done[i] += stage.rows
        for buffer, move in zip(buffers, band.moves, strict=True):
            if move is not None:
                kept = buffer[move.start : move.start + move.rows]
                buffer[:] = [*kept, *[-1] * (len(buffer) - len(kept))]
    assert result == list(range(windows[-1].out_rows))


def test_a_loop_covers_most_bands() -> None:
    runs = [RowWindow(1, 1, 1, 0, 48, 48), RowWindow(3, 2, 1, 0, 48, 24)]
    found = cut(runs, 4)
    assert found is not None
    assert [len(run) for run in found.runs()] == [1, 4, 1]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32])
@pytest.mark.parametrize("extents, axis", [((29, 9), HEIGHT), (FLAT, WIDTH)], ids=["rows", "columns"])
def test_numbers(dtype: DType, extents: tuple[int, int], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "in_bands", join_everything)
    items, wanted, joined = [], {}, 0
    for seed in range(8 if not is_deep() else 14 if dtype is DType.INT16 else 40 if axis == HEIGHT else 20):
        chain = random_chain(seed, dtype, extents=extents)
        graph, samples = chain.graph(), [chain.sketch.sample() for _ in range(2)]
        name = f"chain{seed}"
        origin = Provenance("chain", "0" * 64, "")
        compiled = compile_graph(graph, name, origin, Options(target="host"))
        chains = [chosen.layer.op for chosen in compiled.selected if isinstance(chosen.layer.op, Banded)]
        assert all(op.axis == axis for op in chains)
        joined += bool(chains)
        items.append(Item(name, compiled.files, samples))
        wanted[name] = [values[graph.outputs[0]] for values in interpret(graph, samples)]
    assert joined > len(items) / 2
    for name, outcome in run_batch(items).items():
        assert not outcome.failure, outcome.failure
        for found, expected in zip(outcome.outputs, wanted[name], strict=True):
            (value,) = found.values()
            if dtype is not DType.FLOAT32:
                np.testing.assert_array_equal(value, expected, name)
            else:
                close = 1e-5 * np.abs(expected).max()
                np.testing.assert_allclose(value, expected, rtol=0, atol=close, err_msg=name)


def compiled_chain(chain: Chain, expose: tuple[str, ...] = ()) -> pipeline.Compiled:
    options = Options(target="cortex-m4", expose=expose)
    return compile_graph(chain.graph(), "chain", Provenance("chain", "0" * 64, ""), options)


def labels(compiled: pipeline.Compiled) -> list[str]:
    return [chosen.layer.op.label() for chosen in compiled.selected]


def bottleneck() -> Chain:
    """4 channels, 48 inside, 4 again."""
    chain = Chain(1, extents=(24, 24))
    chain.rng.seed(0)
    chain._window = lambda room: ((1, 1), (1, 1), (0, 0, 0, 0))  # type: ignore[method-assign]
    chain.add("conv", 48)
    chain.add("lookup", 0)
    chain._window = lambda room: ((3, 3), (1, 1), (1, 1, 1, 1))  # type: ignore[method-assign]
    chain.add("depthwise", 0)
    chain._window = lambda room: ((1, 1), (1, 1), (0, 0, 0, 0))  # type: ignore[method-assign]
    chain.add("conv", 4)
    return chain


def test_a_bottleneck_is_found() -> None:
    compiled = compiled_chain(bottleneck())
    assert labels(compiled) == ["conv_tanh_depthwise_conv_conv"]
    assert compiled.plan.arena_bytes < 24 * 24 * 48 / 2


def test_with_a_residual() -> None:
    chain = bottleneck()
    quant = chain.end.quant
    chain.end = chain.sketch.add(Binary("add"), chain.end, chain.sketch.inputs[0], quant=quant)
    compiled = compiled_chain(chain)
    assert labels(compiled) == ["conv_tanh_depthwise_conv_conv_add"]
    x, y = (compiled.plan.places[name].offset for name in (*compiled.graph.inputs, *compiled.graph.outputs))
    assert abs(y - x) < 24 * 24 * 4  # over its own input


def test_a_sum_with_something_else_stays_outside() -> None:
    chain = bottleneck()
    other = chain.sketch.input(chain.end.shape, chain.end.dtype, chain.end.quant)
    chain.end = chain.sketch.add(Binary("add"), chain.end, other, quant=chain.end.quant)
    assert labels(compiled_chain(chain)) == ["conv_tanh_depthwise_conv_conv", "add"]


def blocks_with_sides() -> list[Chain]:
    return [random_chain(seed) for seed in range(40) if seed % 3 == 1 and seed // 3 % 2]


def test_a_block_with_a_side_is_one_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "in_bands", join_everything)
    found = [compiled_chain(chain) for chain in blocks_with_sides()]
    assert {label for compiled in found for label in labels(compiled)} == {
        "conv_depthwise_conv_conv_conv_add",
        "conv_depthwise_conv_conv_pad_add",
        "conv_depthwise_conv_conv_max_pool_pad_add",
    }


def test_a_strided_block_needs_little_more_than_its_input() -> None:
    """As in ResNet: a wide input, half as many rows in the output, and a convolution beside the block."""
    chain = Chain(3, extents=(32, 32))
    chain.add("lookup", 0)
    chain._weighted(Conv((1, 1), pads=(1, 1, 1, 1)), (16, 3, 3, 4), 0)
    x = chain.end
    chain._weighted(Conv((2, 2), pads=(0, 0, 1, 1)), (32, 3, 3, 16), 0)
    chain._weighted(Conv((1, 1), pads=(1, 1, 1, 1)), (32, 3, 3, 32), 0)
    main, chain.end = chain.end, x
    chain._weighted(Conv((2, 2)), (32, 1, 1, 16), 0)
    chain.end = chain.sketch.add(Binary("add"), main, chain.end, quant=chain._quant())
    compiled = compiled_chain(chain)
    assert labels(compiled)[-1] == "conv_conv_conv_add"
    assert x.bytes < compiled.plan.arena_bytes < 1.35 * x.bytes


def test_a_side_whose_rows_overlap_is_none() -> None:
    """Rows that two bands need would be computed twice."""
    chain = Chain(1, extents=(24, 24))
    x = chain.end
    chain._weighted(Conv((1, 1), pads=(1, 1, 1, 1)), (48, 3, 3, 4), 0)
    chain._weighted(Conv((1, 1)), (4, 1, 1, 48), 0)
    main, chain.end = chain.end, x
    chain._weighted(Conv((1, 1), pads=(1, 1, 1, 1)), (4, 3, 3, 4), 0)
    chain.end = chain.sketch.add(Binary("add"), main, chain.end, quant=chain._quant())
    assert "conv_conv" in labels(compiled_chain(chain))


def test_a_chain_up_to_the_mean_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in MLPerf Tiny's KWS: no tensor of the network exists as a whole. The sums are exact."""
    chain = Chain(5, extents=(25, 5))
    chain.same = True
    for kind in ("conv", "depthwise", "conv", "depthwise", "conv"):
        chain.add(kind, 32)
    pool = AveragePool((25, 5), (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(pool, chain.end, quant=chain.end.quant)
    graph, samples = chain.graph(), [chain.sketch.sample() for _ in range(2)]
    wanted = [values[graph.outputs[0]] for values in interpret(graph, samples)]
    origin = Provenance("chain", "0" * 64, "")
    sizes = {}
    for goal in ("balanced", "ram"):
        compiled = compile_graph(graph, goal, origin, Options(target="host", optimize=goal))
        sizes[goal] = compiled.plan.arena_bytes
        outcome = run_batch([Item(goal, compiled.files, samples)])[goal]
        assert not outcome.failure, outcome.failure
        for found, expected in zip(outcome.outputs, wanted, strict=True):
            np.testing.assert_array_equal(next(iter(found.values())), expected)
    assert labels(compiled) == ["conv_depthwise_conv_conv_depthwise_conv_conv_average_pool"]
    assert sizes["ram"] < 0.9 * sizes["balanced"]


def test_an_exposed_tensor_is_not_dissolved() -> None:
    chain = bottleneck()
    inner = chain.graph().nodes[1].outputs[0]
    compiled = compiled_chain(chain, (inner,))
    assert inner in compiled.plan.places
    assert labels(compiled)[:2] == ["conv", "tanh"]


def test_small_things_are_left_alone() -> None:
    """Without wide tensors, bands would save nothing."""
    chain = Chain(1)
    chain.add("conv", 4)
    chain.add("conv", 4)
    assert labels(compiled_chain(chain)) == ["conv", "conv"]


def test_an_observer_sees_the_graph_that_is_emitted() -> None:
    seen: dict[str, Graph] = {}
    origin = Provenance("chain", "0" * 64, "")
    compiled = compile_graph(
        bottleneck().graph(), "chain", origin, Options(target="cortex-m4"), seen.__setitem__
    )
    assert tuple(seen) == pipeline.STAGES
    assert seen["bands"] is compiled.graph
    assert "= Banded(" in dump(seen["bands"])
    assert "chain=conv_tanh_depthwise_conv_conv, rows=" in dump(seen["bands"])


@pytest.mark.parametrize("broken", ["shape", "operand"])
def test_the_verifier_checks_what_bands_produce(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(
        graph: Graph, selected: tuple[Selected, ...], target: Target, outside: bool, chaining: Chaining
    ) -> Choice:
        joined, chosen = in_bands(graph, selected, target, outside, chaining)
        (node,) = joined.nodes
        if broken == "operand":
            return replace(joined, nodes=(replace(node, inputs=("lost", *node.inputs[1:])),)), chosen
        assert isinstance(node.op, Banded)
        first = replace(node.op.links[0], op=Conv((2, 2)))  # half as many rows as its output has
        op = replace(node.op, links=(first, *node.op.links[1:]))
        return replace(joined, nodes=(replace(node, op=op),)), chosen

    monkeypatch.setattr(placement, "in_bands", wrong)
    with pytest.raises(AssertionError, match=r"^after bands: "):
        compiled_chain(bottleneck())


def waveform_network(dtype: DType = DType.INT8) -> Chain:
    """As for sound or an electrocardiogram: one channel, windows along the width, pools that shorten it."""
    chain = Chain(6, dtype, extents=(1, 1500))
    chain._weighted(Conv((1, 3), pads=(0, 4, 0, 4)), (16, 1, 9, 4), 0)
    chain.end = chain.sketch.add(MaxPool((1, 4), (1, 4)), chain.end)
    chain._weighted(Conv((1, 1), pads=(0, 1, 0, 1)), (16, 1, 3, 16), 0)
    pool = AveragePool((1, chain.end.shape[2]), (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(pool, chain.end, quant=chain.end.quant)
    return chain


@pytest.mark.parametrize("chain", [bottleneck(), waveform_network()])
def test_calls_in_bands_compute_all_rows(chain: Chain) -> None:
    """What ``tinyml cost`` adds up; a link that sums up the rows of bands has no calls of its own."""
    origin = Provenance("chain", "0" * 64, "")
    compiled = compile_graph(chain.graph(), "chain", origin, Options(target="cortex-m4", optimize="ram"))
    layer = next(chosen.layer for chosen in compiled.selected if isinstance(chosen.layer.op, Banded))
    op, found = layer.op, calls_in_bands(layer)
    assert isinstance(op, Banded)
    assert len(found) == len(op.links)
    for part, calls in zip(op.layers(layer), found, strict=True):
        rows = sum(bands * one.output.shape[op.axis] for one, bands in calls)
        assert rows == (part.output.shape[op.axis] if calls else 0)
    assert all(found[:-1])
    assert max(bands for _, bands in found[0]) > 1


@pytest.mark.parametrize("optimize", ["balanced", "ram"])
def test_a_1d_network_in_bands_of_columns(optimize: str) -> None:
    """The tensor that is larger than the input is never in memory as a whole."""
    chain = waveform_network()
    graph, samples = chain.graph(), [chain.sketch.sample() for _ in range(2)]
    origin = Provenance("chain", "0" * 64, "")
    compiled = compile_graph(graph, "flat", origin, Options(target="host", optimize=optimize))
    op = compiled.selected[0].layer.op
    assert isinstance(op, Banded)
    assert op.axis == WIDTH
    assert op.label().startswith("conv_max_pool")
    assert f"columns={op.rows}" in dump(compiled.graph)
    assert compiled.plan.arena_bytes < 1.5 * chain.sketch.inputs[0].bytes
    outcome = run_batch([Item("flat", compiled.files, samples)])["flat"]
    assert not outcome.failure, outcome.failure
    for found, expected in zip(outcome.outputs, interpret(graph, samples), strict=True):
        np.testing.assert_array_equal(next(iter(found.values())), expected[graph.outputs[0]])


def residual_blocks(dtype: DType, extents: tuple[int, int]) -> Chain:
    """Blocks of the same size: each of them needs as much memory as the others, at its own peak."""
    chain = Chain(5, dtype, extents)
    chain.same = True
    chain.add("conv", 16)
    for _ in range(4):
        x = chain.end
        chain.add("conv", 16)
        chain.add("conv", 16)
        quant = Quant.per_tensor(0.2, 3) if dtype is DType.INT8 else None
        chain.end = chain.sketch.add(Binary("add", clamp=(0.0, np.inf)), x, chain.end, quant=quant)
    pool = AveragePool(chain.end.shape[1:3], (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(pool, chain.end, quant=chain.end.quant)
    return chain


@pytest.mark.parametrize("extents", [(1, 160), (30, 12)], ids=["steps", "rows"])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8], ids=["float", "int8"])
def test_equal_peaks_are_all_lowered(
    dtype: DType, extents: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No chain alone makes the arena smaller; a chain in every block does."""
    chain = residual_blocks(dtype, extents)
    graph, samples = chain.graph(), [chain.sketch.sample() for _ in range(2)]
    origin, options = Provenance("chain", "0" * 64, ""), Options(target="host")
    compiled = compile_graph(graph, "peaks", origin, options)
    assert labels(compiled).count("conv_conv_add") >= 3
    monkeypatch.setattr(join, "one_at_each_peak", lambda *_: None)
    assert compiled.plan.arena_bytes < 0.8 * compile_graph(graph, "one", origin, options).plan.arena_bytes
    outcome = run_batch([Item("peaks", compiled.files, samples)])["peaks"]
    assert not outcome.failure, outcome.failure
    for found, expected in zip(outcome.outputs, interpret(graph, samples), strict=True):
        (value,), wanted = found.values(), expected[graph.outputs[0]]
        if dtype is DType.INT8:
            np.testing.assert_array_equal(value, wanted)
        else:
            np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_loops_stay_outside_where_vectors_compute_the_rest() -> None:
    """Generated loops of a pool would take more instructions in bands of columns: only `optimize: ram`."""
    graph, origin = waveform_network().graph(), Provenance("chain", "0" * 64, "")
    made = {
        goal: compile_graph(graph, goal, origin, Options(target="cortex-m55", optimize=goal))
        for goal in ("balanced", "ram")
    }
    assert not any(isinstance(one.layer.op, Banded) for one in made["balanced"].selected)
    assert any(isinstance(one.layer.op, Banded) for one in made["ram"].selected)


def test_columns_of_tensors_with_more_rows_are_not_divided() -> None:
    """A slice of their columns is not contiguous."""
    chain = Chain(1, extents=(2, 400))
    chain._weighted(Conv((1, 1)), (32, 1, 1, 4), 0)
    chain._weighted(Conv((1, 1)), (4, 1, 1, 32), 0)
    (one,) = compiled_chain(chain).selected
    assert isinstance(one.layer.op, Banded)
    assert one.layer.op.axis == HEIGHT
