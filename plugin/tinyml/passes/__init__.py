# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Passes: pure functions from graph to graph, one file each, in the order of this tuple."""

from __future__ import annotations

from collections.abc import Callable

from tinyml.ir import Graph
from tinyml.passes.cancel_transposes import cancel_transposes
from tinyml.passes.fold_constant_channels import fold_constant_channels
from tinyml.passes.fold_constants import fold_constants
from tinyml.passes.fold_scale import fold_scale
from tinyml.passes.fold_transpose_into_dense import fold_transpose_into_dense
from tinyml.passes.fuse_activation import fuse_activation
from tinyml.passes.fuse_pad import fuse_pad
from tinyml.passes.fuse_qdq import fuse_qdq
from tinyml.passes.join_casts import join_casts
from tinyml.passes.keep_last_step import keep_last_step
from tinyml.passes.merge_common import merge_common
from tinyml.passes.move_quantization import move_quantization
from tinyml.passes.read_integers import read_integers
from tinyml.passes.remove_dead_code import remove_dead_code
from tinyml.passes.remove_no_ops import remove_no_ops
from tinyml.passes.reshape_still_transposes import reshape_still_transposes
from tinyml.passes.sink_reshape import sink_reshape
from tinyml.passes.tabulate_bytes import tabulate_bytes
from tinyml.passes.unsigned_to_signed import unsigned_to_signed
from tinyml.passes.use_dilation import use_dilation

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (
    remove_dead_code,
    join_casts,
    remove_no_ops,
    merge_common,
    keep_last_step,
    # channels last, and folding neighbours into float layers
    cancel_transposes,
    sink_reshape,
    remove_no_ops,
    fold_scale,
    fuse_activation,
    # quantised models: integer operators where possible
    unsigned_to_signed,
    move_quantization,
    tabulate_bytes,
    fuse_qdq,
    read_integers,
    fold_constants,
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
    fold_constant_channels,
    merge_common,
    remove_dead_code,
)
