"""Passes: pure functions from graph to graph, one file each, in the order of this tuple."""

from __future__ import annotations

from collections.abc import Callable

from tinyml.ir import Graph
from tinyml.passes.constant_channels import fold_constant_channels
from tinyml.passes.dead_code import remove_dead_code
from tinyml.passes.dense_transpose import fold_transpose_into_dense
from tinyml.passes.fold_constants import fold_constants
from tinyml.passes.fuse_activation import fuse_activation
from tinyml.passes.fuse_qdq import fuse_qdq
from tinyml.passes.layout import cancel_transposes
from tinyml.passes.move_quantization import move_quantization
from tinyml.passes.unsigned_to_signed import unsigned_to_signed

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (
    remove_dead_code,
    cancel_transposes,
    fuse_activation,
    unsigned_to_signed,
    move_quantization,
    fuse_qdq,
    fold_constants,
    fold_transpose_into_dense,
    fold_constants,
    cancel_transposes,
    fold_constant_channels,
    remove_dead_code,
)
