# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Passes: pure functions from graph to graph, one file each, in the order of this tuple."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.ir import Graph
from tinyml.ops.concat import Concat
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.passes.bound_sums import bound_sums
from tinyml.passes.cancel_transposes import cancel_transposes
from tinyml.passes.fold_constant_channels import fold_constant_channels
from tinyml.passes.fold_constants import fold_constants
from tinyml.passes.fold_scale import fold_scale
from tinyml.passes.fold_transpose_into_dense import fold_transpose_into_dense
from tinyml.passes.fuse_activation import fuse_activation
from tinyml.passes.fuse_attention import fuse_attention
from tinyml.passes.fuse_normalize import fuse_normalize
from tinyml.passes.fuse_pad import fuse_pad
from tinyml.passes.fuse_qdq import fuse_qdq
from tinyml.passes.fuse_recurrent import fuse_recurrent
from tinyml.passes.integers_in_loops import integers_in_loops
from tinyml.passes.join_casts import join_casts
from tinyml.passes.keep_last_step import keep_last_step
from tinyml.passes.merge_common import merge_common
from tinyml.passes.move_quantization import move_quantization
from tinyml.passes.narrow_dense import narrow_dense
from tinyml.passes.narrow_rows import narrow_fed_rows, narrow_rows
from tinyml.passes.read_integers import read_integers
from tinyml.passes.remove_dead_code import remove_dead_code
from tinyml.passes.remove_no_ops import remove_no_ops
from tinyml.passes.reshape_still_transposes import reshape_still_transposes
from tinyml.passes.roll_recurrent import roll_recurrent
from tinyml.passes.sink_reshape import sink_reshape
from tinyml.passes.sum_integers import sum_integers
from tinyml.passes.tabulate_bytes import tabulate_bytes
from tinyml.passes.tabulate_functions import tabulate_functions
from tinyml.passes.tabulate_products import tabulate_products
from tinyml.passes.unsigned_to_signed import unsigned_to_signed
from tinyml.passes.use_dilation import use_dilation

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (
    remove_dead_code,
    join_casts,
    remove_no_ops,
    merge_common,
    fuse_normalize,
    roll_recurrent,
    keep_last_step,
    # channels last, and folding neighbours into float layers
    cancel_transposes,
    sink_reshape,
    narrow_rows,
    remove_no_ops,
    fold_scale,
    fuse_activation,
    # quantised models: integer operators where possible
    unsigned_to_signed,
    integers_in_loops,
    move_quantization,
    tabulate_bytes,
    fuse_qdq,
    sum_integers,
    read_integers,
    fold_constants,
    fuse_recurrent,
    keep_last_step,
    # the same again, now that constants are known and more operators are integer ones
    cancel_transposes,
    reshape_still_transposes,
    sink_reshape,
    remove_no_ops,
    fold_transpose_into_dense,
    fold_scale,
    fuse_activation,
    use_dilation,
    fuse_pad,
    sink_reshape,
    remove_no_ops,
    fuse_activation,
    tabulate_products,
    tabulate_functions,
    bound_sums,
    fold_constant_channels,
    fuse_attention,
    remove_dead_code,
    narrow_rows,
    sink_reshape,
    narrow_dense,
    remove_no_ops,
    merge_common,
    remove_dead_code,
)


def without_attention(steps: Sequence[Pass]) -> tuple[Pass, ...]:
    """Attention stays products and a softmax, of which the costs are known."""
    return tuple(step for step in steps if step is not fuse_attention)


def without_tables(steps: Sequence[Pass]) -> tuple[Pass, ...]:
    """Functions stay layers, which an NPU computes; it has no tables of ours."""
    return tuple(step for step in steps if step not in (tabulate_functions, tabulate_products))


def with_fed_rows(steps: Sequence[Pass]) -> tuple[Pass, ...]:
    """Inputs are read as a whole, by the layers that compute them as they arrive."""
    return tuple(narrow_fed_rows if step is narrow_rows else step for step in steps)


def layers_with_recurrent(graph: Graph) -> int | None:
    """Of the first steps of a loop, unrolled: None if no part of them becomes a recurrent layer; else how
    many layers are left, apart from those that only move elements.
    """
    own = _recurrent(graph)
    for step in PASSES[: PASSES.index(roll_recurrent) + 1]:
        graph = step(graph)
    if _recurrent(graph) <= own:
        return None
    return sum(not (node.op.movement or isinstance(node.op, Concat)) for node in graph.nodes)


def _recurrent(graph: Graph) -> int:
    return sum(isinstance(node.op, Recurrent) for node in graph.nodes)


def find_passes(names: Sequence[str]) -> list[Pass]:
    """Passes by name."""
    known = {step.__name__: step for step in PASSES}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"there is no pass {name!r}{did_you_mean(name, known)}", f"one of: {', '.join(known)}"
            )
    return [known[name] for name in names]


def pass_summaries() -> dict[str, str]:
    """The passes in their order, each with the first line of its module's documentation."""
    modules = {step.__name__: sys.modules[step.__module__].__doc__ or "" for step in PASSES}
    return {name: text.partition("\n")[0] for name, text in modules.items()}
