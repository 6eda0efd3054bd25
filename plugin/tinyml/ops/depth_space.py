"""DepthToSpace and SpaceToDepth: blocks of pixels to channels and back, as reshapes and a transpose."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.errors import ModelError
from tinyml.ir import Tensor
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.reading import Builder, OnnxNode, onnx_op


@onnx_op("DepthToSpace")
def read_depth_to_space(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    n, channels, height, width = x.shape
    b = int(node.attr("blocksize"))
    if channels % (b * b):
        raise ModelError(f"DepthToSpace node {node.name!r}: {channels} channels are no blocks of {b}x{b}")
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
        raise ModelError(f"SpaceToDepth node {node.name!r}: {height}x{width} is no blocks of {b}x{b}")
    y = build.add1(Reshape((n, channels, height // b, b, width // b, b)), [x])
    perm = (0, 3, 5, 1, 2, 4) if node.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    y = build.add1(Transpose(perm), [y])
    return [build.add1(Reshape((n, channels * b * b, height // b, width // b)), [y])]
