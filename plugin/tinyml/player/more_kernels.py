# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparisons, choices, places, resizing, and float weights in other forms, that a player can call."""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.layout import Layout
from tinyml.player.playable import Playable, own

WINDOW = ("window.c", "nest.c")


def _int16(number: int, name: str, record: Layout, source: str, operands: int = 2) -> Playable:
    return own(number, name, record, operands, source, needs=WINDOW, family="int16")


def _choice(number: int, name: str, record: Layout, operands: int) -> Playable:
    return own(number, name, record, operands, "play_choose.c", family="elementwise")


def _sparse(number: int, name: str, record: Layout, header: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        2,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        header,
        (f"dense/{name}.c", "player/play_sparse.c"),
    )


def _blocks(number: int, name: str, source: str, record: Layout, operands: int, family: str = "") -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        operands,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        "tinyml/block_weights.h",
        (source, "player/play_block_weights.c"),
        family=family,
    )


ALL = (
    _int16(296, "max_pool_s16", records.MAX_POOL, "play_pools_s16.c"),
    _int16(297, "mean_any_s16", records.MEAN_ANY, "play_pools_s16.c"),
    _int16(298, "reduce_s16", records.REDUCE, "play_pools_s16.c"),
    _int16(299, "matmul_s16", records.MATMUL_S8, "play_matmul.c", 3),
    _choice(300, "compare", records.COMPARE, 3),
    _choice(301, "compare_s8", records.COMPARE_BYTES, 3),
    _choice(302, "where", records.WHERE, 4),
    own(303, "resize_bilinear", records.RESIZE_BILINEAR, 2, "play_resize.c", needs=(), family="resize"),
    own(304, "top_k", records.TOP_K, 3, "play_top_k.c", needs=(), family="indexing"),
    own(305, "gather_elements", records.GATHER_ELEMENTS, 3, "play_gather.c", family="indexing"),
    own(327, "reduce_whole", records.REDUCE_WHOLE, 2, "play_reduce_whole.c", family="reduce"),
    own(328, "scatter", records.SCATTER, 3, "play_scatter.c", family="indexing"),
    own(294, "update", records.UPDATE, 3, "play_update.c", family="indexing"),
    own(329, "scatter_elements", records.SCATTER_ELEMENTS, 3, "play_scatter.c", family="indexing"),
    own(330, "resize_weighted", records.RESIZE_WEIGHTED, 2, "play_resize_weighted.c", family="resize"),
    _sparse(306, "dense_sparse_f32", records.DENSE_SPARSE, "tinyml/dense.h"),
    _sparse(307, "dense_runs_f32", records.DENSE_RUNS, "tinyml/dense.h"),
    _sparse(308, "dense_runs_f32_s8", records.DENSE_RUNS, "tinyml/byte_weights.h"),
    _blocks(309, "dense_f32_s4", "dense/dense_f32_s4.c", records.DENSE_BLOCKS, 3),
    _blocks(310, "dense_blocks_f32_s8", "dense/dense_blocks_f32_s8.c", records.DENSE_BLOCKS, 3),
    _blocks(311, "row_f32_s4", "weighted/row_f32_s4.c", records.PACKED_ROWS, 2, "indexing"),
    _blocks(312, "row_f32_s8", "weighted/row_f32_s8.c", records.PACKED_ROWS, 2, "indexing"),
)
