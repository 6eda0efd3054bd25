# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DepthToSpace and SpaceToDepth: blocks of pixels to channels and back, as reshapes and a transpose.

TFLite has the same with the batch in place of the channels."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ModelError
from tinyml.ir import Tensor
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.pad import pad
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import take
from tinyml.ops.transpose import Transpose

quantizes("DepthToSpace", "SpaceToDepth", moves=True, keeps_scale=True)


@onnx_op("DepthToSpace")
def read_depth_to_space(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    n, channels, height, width = x.shape
    b = int(node.attr("blocksize"))
    if channels % (b * b):
        raise ModelError(
            f"DepthToSpace node {node.name!r}: {channels} channels are not a multiple of {b}x{b}"
        )
    depth = channels // (b * b)
    if node.attr("mode", "DCR") == "DCR":
        parts, perm = (n, b, b, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        parts, perm = (n, depth, b, b, height, width), (0, 1, 4, 2, 5, 3)
    y = build.add1(Transpose(perm), [build.add1(Reshape(parts), [x])])
    return [build.add1(Reshape((n, depth, height * b, width * b)), [y])]


@onnx_op("SpaceToDepth")
def read_space_to_depth(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    n, channels, height, width = x.shape
    b = int(node.attr("blocksize"))
    if height % b or width % b:
        raise ModelError(f"SpaceToDepth node {node.name!r}: {height}x{width} is not a multiple of {b}x{b}")
    y = build.add1(Reshape((n, channels, height // b, b, width // b, b)), [x])
    perm = (0, 3, 5, 1, 2, 4) if node.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    y = build.add1(Transpose(perm), [y])
    return [build.add1(Reshape((n, channels * b * b, height // b, width // b)), [y])]


@tflite_op("SPACE_TO_DEPTH")
def read_tflite_space_to_depth(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, b = node.input(0), node.options.BlockSize()
    n, height, width, channels = x.shape
    y = build.add1(Reshape((n, height // b, b, width // b, b, channels)), [x])
    y = build.add1(Transpose((0, 1, 3, 2, 4, 5)), [y])
    return [build.add1(Reshape((n, height // b, width // b, b * b * channels)), [y])]


@tflite_op("DEPTH_TO_SPACE")
def read_tflite_depth_to_space(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, b = node.input(0), node.options.BlockSize()
    n, height, width, channels = x.shape
    y = build.add1(Reshape((n, height, width, b, b, channels // (b * b))), [x])
    y = build.add1(Transpose((0, 1, 3, 2, 4, 5)), [y])
    return [build.add1(Reshape((n, height * b, width * b, channels // (b * b))), [y])]


def _blocks(node: TfliteNode) -> tuple[list[int], list[list[int]]]:
    """Block extents, and the padding or cropping before and after each spatial axis."""
    borders = node.const(2).reshape(-1, 2)
    return [int(b) for b in node.const(1).reshape(-1)], [[int(v) for v in row] for row in borders]


@tflite_op("SPACE_TO_BATCH_ND")
def read_space_to_batch(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    blocks, borders = _blocks(node)
    x, spatial = node.input(0), len(blocks)
    rest = len(x.shape) - 1 - spatial
    begins = [0, *(row[0] for row in borders), *[0] * rest]
    ends = [0, *(row[1] for row in borders), *[0] * rest]
    x = pad(build, x, begins, ends, "constant")
    n, tail = x.shape[0], x.shape[1 + spatial :]
    counts = [size // b for size, b in zip(x.shape[1:], blocks, strict=False)]
    split = [n, *(v for pair in zip(counts, blocks, strict=True) for v in pair), *tail]
    inner = [2 + 2 * i for i in range(spatial)]
    outer = [1 + 2 * i for i in range(spatial)]
    y = build.add1(Reshape(tuple(split)), [x])
    y = build.add1(Transpose((*inner, 0, *outer, *range(1 + 2 * spatial, len(split)))), [y])
    batch = n
    for b in blocks:
        batch *= b
    return [build.add1(Reshape((batch, *counts, *tail)), [y])]


@tflite_op("BATCH_TO_SPACE_ND")
def read_batch_to_space(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    blocks, crops = _blocks(node)
    x, spatial = node.input(0), len(blocks)
    n, tail = x.shape[0], x.shape[1 + spatial :]
    for b in blocks:
        n //= b
    y = build.add1(Reshape((*blocks, n, *x.shape[1:])), [x])
    perm = [spatial]
    for i in range(spatial):
        perm += [spatial + 1 + i, i]
    y = build.add1(Transpose((*perm, *range(2 * spatial + 1, len(y.shape)))), [y])
    sizes = [size * b for size, b in zip(x.shape[1:], blocks, strict=False)]
    y = build.add1(Reshape((n, *sizes, *tail)), [y])
    kept = {1 + i: (crop[0], sizes[i] - crop[0] - crop[1], 1) for i, crop in enumerate(crops)}
    return [take(build, y, kept)]
