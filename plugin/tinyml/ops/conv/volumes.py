# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions with three spatial axes as convolutions of images: see ``depth_windows.py``.

Volumes are (n, depth, height, width, channels), their filters (out, depth, height, width, in / groups).
"""

from __future__ import annotations

from tinyml.ir import Tensor
from tinyml.ops.conv.depth_windows import DepthWindows
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose


def images_of(build: Builder, x: Tensor, windows: DepthWindows) -> Tensor:
    """The images of a volume, one for each output slice."""
    if windows == DepthWindows(groups=windows.groups):  # every slice is an image
        return build.add1(Reshape((x.shape[0] * x.shape[1], *x.shape[2:])), [x])
    return build.add1(windows, [x])


def image_filters(build: Builder, w: Tensor) -> Tensor:
    """Filters of volumes as those of images: (out, height, width, depth * in / groups)."""
    outs, depth, height, width, ins = w.shape
    w = build.add1(Transpose((0, 2, 3, 1, 4)), [w])
    return build.add1(Reshape((outs, height, width, depth * ins)), [w])


def volume_of(build: Builder, y: Tensor, batches: int) -> Tensor:
    """Output slices as a volume again."""
    return build.add1(Reshape((batches, y.shape[0] // batches, *y.shape[1:])), [y])
