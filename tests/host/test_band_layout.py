# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of a chain that share memory: no row is lost before it is read, and the memory is small."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tests.host.test_bands import random_windows
from tests.support.chains import Chain
from tinyml.emit.model import Provenance
from tinyml.ir.hook_types import RowWindow
from tinyml.memory.bands.band_layout import Contents, Lead
from tinyml.memory.bands.band_rows import Bands, cut, to_sums
from tinyml.memory.bands.banded import Banded
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.pool.average import AveragePool
from tinyml.pipeline import Compiled, Options, compile_graph

UNKNOWN = -1


def contents(bands: Bands, seed: int, lead: Lead | None, sizes: Sequence[int]) -> Contents:
    rng = random.Random(seed)
    links = len(bands.bands[0].in_order)
    rows = tuple(rng.choice(sizes) for _ in range(links - 1))
    work = tuple(rng.choice([0, 8, 40]) for _ in range(links))
    return Contents(bands, rows, work, rng.choice([0, 16]), lambda link, stage: lead)


def run(what: Contents, windows: Sequence[RowWindow]) -> None:
    """Each byte of the memory holds the number of its row, or of what was written over it."""
    layout = what.layout()
    memory = np.full(layout.bytes, UNKNOWN)
    done = [0] * len(what.work_bytes)

    def span(buffer: int, first: int, count: int) -> slice:
        size = what.row_bytes[buffer]
        start = layout.buffers[buffer] + first * size
        assert 0 <= start <= start + count * size <= layout.bytes
        return slice(start, start + count * size)

    def named(buffer: int, first: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.repeat(1000 * (buffer + 1) + np.arange(first, first + count), what.row_bytes[buffer])

    memory[layout.sums : layout.sums + what.sum_bytes] = -3
    moved = range(len(what.bands.bands[0].moves))
    order = sorted(moved, key=lambda buffer: layout.buffers[buffer])
    for band in what.bands.bands:
        for link, stage in enumerate(band.in_order):
            if not stage.rows:
                continue
            if link:
                before = next(b for b in range(link) if what.reader(b) == link)
                summed = link == len(windows)  # all rows that the link before has just computed
                first = done[before] - stage.rows if summed else windows[link].read(done[link], 0)[0]
                held = memory[span(before, stage.source, stage.source_rows)]
                np.testing.assert_array_equal(held, named(before, max(first, 0), stage.source_rows))
            work = layout.work[link]
            memory[work : work + what.work_bytes[link]] = -2
            if link < len(what.row_bytes):
                memory[span(link, stage.into, stage.rows)] = named(link, done[link], stage.rows)
            done[link] += stage.rows
        for buffer in order:
            if (move := band.moves[buffer]) is not None:
                rows = memory[span(buffer, move.start, move.rows)].copy()
                memory[span(buffer, 0, move.rows)] = rows
    assert (memory[layout.sums : layout.sums + what.sum_bytes] == -3).all()


@pytest.mark.parametrize("gently", [False, True])
@pytest.mark.parametrize("sizes", [(8, 16, 24), (9, 15, 40)], ids=["rows", "columns"])
@pytest.mark.parametrize("lead", [None, Lead(0), Lead(-8), Lead(0, exact=True)])
def test_no_row_is_lost(gently: bool, lead: Lead | None, sizes: Sequence[int]) -> None:
    shared = 0
    for seed in range(60):
        windows = random_windows(seed)
        bands = cut(windows, random.Random(seed).choice([1, 2, 3]), gently=gently)
        if bands is None or len(bands.bands[0].stages) < 2:
            continue
        what = contents(to_sums(bands) or bands if gently else bands, seed, lead, sizes)
        run(what, windows)
        apart = [rows * size for rows, size in zip(what.bands.buffer_rows, what.row_bytes, strict=True)]
        shared += what.layout().bytes < sum(apart)
    assert shared > 10


def same(rows: int, kernel: int) -> RowWindow:
    return RowWindow(kernel, 1, 1, kernel // 2, rows, rows)


def test_a_chain_slides_through_its_memory() -> None:
    """Depthwise 3x3 and pointwise in turn: two rows of each input remain, plus the rows of one band."""
    windows = [same(25, kernel) for kernel in (1, 3, 1, 3, 1)]
    bands = cut(windows, 1, gently=True)
    assert bands is not None
    what = Contents(bands, (64,) * 4, (0,) * 5, 0, lambda link, stage: Lead(0))
    run(what, windows)
    assert what.layout().bytes == 64 * (2 + 2 + 1)


def test_working_memory_lies_where_rows_are_not_needed_yet() -> None:
    windows = [same(9, 1)] * 3
    bands = cut(windows, 1)
    assert bands is not None
    what = Contents(bands, (64, 64), (64, 0, 64), 0, lambda link, stage: None)
    run(what, windows)
    assert what.layout().bytes == 128


def test_a_link_that_reads_its_input_to_the_end_writes_elsewhere() -> None:
    windows = [same(9, 1), same(9, 3), same(9, 1)]
    bands = cut(windows, 1)
    assert bands is not None
    what = Contents(bands, (64, 64), (0, 0, 0), 0, lambda link, stage: None)
    run(what, windows)
    assert what.layout().bytes == 64 * (3 + 1)


def keyword_network() -> Chain:
    """As MLPerf Tiny's KWS, with fewer channels."""
    chain = Chain(5, extents=(25, 5))
    chain._weighted(Conv((1, 1), pads=(1, 1, 1, 1)), (32, 3, 3, 4), 0)
    for _ in range(3):
        chain._weighted(DepthwiseConv((1, 1), pads=(1, 1, 1, 1)), (1, 3, 3, 32), 3)
        chain._weighted(Conv((1, 1)), (32, 1, 1, 32), 0)
    pool = AveragePool((25, 5), (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(pool, chain.end, quant=chain.end.quant)
    return chain


def compiled(chain: Chain, target: str, optimize: str) -> Compiled:
    options = Options(target=target, optimize=optimize, kernels="portable")
    return compile_graph(chain.graph(), "chain", Provenance("chain", "0" * 64, ""), options)


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55"])
def test_less_than_one_of_the_large_tensors(target: str) -> None:
    """On every core, with `optimize: ram`, and in bands of several rows."""
    lean = compiled(keyword_network(), target, "ram")
    chains = [one.layer.op for one in lean.selected if isinstance(one.layer.op, Banded)]
    assert len(chains) == 1
    assert chains[0].rows > 1
    assert lean.plan.arena_bytes < 0.75 * 25 * 5 * 32
