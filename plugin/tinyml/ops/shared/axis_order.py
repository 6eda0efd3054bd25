# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX is channels-first, the IR is channels-last: the transposes that a reader puts in between.

The layout pass later moves these transposes together and cancels them.
"""

from __future__ import annotations

from tinyml.ir import Tensor
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose


def channels_last(build: Builder, x: Tensor) -> Tensor:
    """(N, C, L) or (N, C, …, H, W) as (N, …, H, W, C), with H = 1 for one spatial axis."""
    rank = len(x.shape)
    x = build.add1(Transpose((0, *range(2, rank), 1)), [x])
    return build.add1(Reshape((x.shape[0], 1, *x.shape[1:])), [x]) if rank == 3 else x


def channels_first(build: Builder, y: Tensor, spatial: int) -> Tensor:
    """(N, …, H, W, C) back to (N, C, …, H, W), or to (N, C, W) for one spatial axis."""
    if spatial == 1:
        y = build.add1(Reshape((y.shape[0], *y.shape[2:])), [y])
    rank = len(y.shape)
    return build.add1(Transpose((0, rank - 1, *range(1, rank - 1))), [y])


def depthwise_weights(build: Builder, w: Tensor) -> Tensor:
    """(C * M, 1, K), (C * M, 1, KH, KW) or (C * M, 1, 1, KH, KW) as (1, KH, KW, C * M)."""
    if len(w.shape) != 4:
        w = build.add1(Reshape((*w.shape[:2], *(1, *w.shape[2:])[-2:])), [w])
    return build.add1(Transpose((1, 2, 3, 0)), [w])
