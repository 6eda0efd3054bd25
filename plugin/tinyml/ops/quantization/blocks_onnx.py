# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MatMulNBits and GatherBlockQuantized of onnxruntime: constants in blocks of a few bits, each with a scale.

The readers give real weights. Kernels that keep them packed find the blocks in the numbers.
The page ``ContribOperators`` of onnxruntime defines both operators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import limits
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import Array, DType, Tensor
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.narrow import NARROW, unpacked
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, onnx_op
from tinyml.ops.indexing.gather import gather
from tinyml.ops.shared.axis import from_front

MICROSOFT = "com.microsoft"
SMALLEST_BLOCK = 16
BITS = (2, 4, 8)


def block_size(node: OnnxNode, default: int = 0) -> int:
    size = int(node.attr("block_size", default))
    if size < SMALLEST_BLOCK or size & (size - 1):
        raise ModelError(
            f"{node.op_type} node {node.name!r} has blocks of {size} elements",
            f"a block has a power of 2 of them, at least {SMALLEST_BLOCK}",
        )
    return size


def bits_of(node: OnnxNode) -> int:
    bits = int(node.attr("bits", 4))
    if bits not in BITS:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has weights of {bits} bits",
            f"{', '.join(map(str, BITS))} bits are supported",
        )
    return bits


def _counted(node: OnnxNode, what: str, values: Array, count: int) -> Array:
    if values.size != count:
        raise ModelError(
            f"{node.op_type} node {node.name!r} has {values.size} {what}; its attributes ask for {count}",
            MALFORMED,
        )
    return values.reshape(-1)


def _fields(packed: Array, bits: int, rows: int, columns: int) -> Array:
    """Unsigned numbers of ``bits`` bits; every row starts with a byte of its own."""
    if bits == 8:
        return packed.reshape(rows, -1)[:, :columns].astype(np.int64)
    numbers = unpacked(packed.astype(np.uint8).tobytes(), NARROW[f"uint{bits}"])
    return numbers.reshape(rows, -1)[:, :columns].astype(np.int64)


def _bytes(node: OnnxNode, index: int, what: str) -> Array:
    values = node.const(index)
    if values.dtype != np.uint8:
        raise ModelError(
            f"{node.op_type} node {node.name!r} has {what} of type {values.dtype}, not uint8", MALFORMED
        )
    return values


def _scales(node: OnnxNode, build: Builder, index: int) -> Array:
    """Real numbers of any sign, which onnxruntime's quantiser writes; those of a block of zeros may be 0."""
    scales = node.const(index).astype(np.float32)
    if not np.isfinite(scales).all():
        raise ModelError(
            f"{node.op_type} node {node.name!r} has a scale that is not a finite number", MALFORMED
        )
    zeros = int(np.sum(scales == 0))
    if zeros:
        build.note(f"{node.name!r} has {zeros} blocks with a scale of 0: their weights are 0")
    return scales


@onnx_op("MatMulNBits", domain=MICROSOFT)
def read_matmul_nbits(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """a x weights (+ bias), with the weights of an output in blocks along its inputs."""
    a, bias = node.input(0), node.optional(5)
    if node.optional(4) is not None:
        raise UnsupportedError(
            f"MatMulNBits node {node.name!r} has group indices (g_idx)",
            "quantise the model without reordering its columns (act_order or desc_act: false)",
        )
    bits, block = bits_of(node), block_size(node)
    ins, outs = int(node.attr("K", 0)), int(node.attr("N", 0))
    limits.check_shape((outs, ins), f"MatMulNBits node {node.name!r}")
    if ins < 1 or outs < 1 or a.shape[-1:] != (ins,):
        raise ModelError(
            f"MatMulNBits node {node.name!r} has K = {ins} and N = {outs} for an input of shape {a.shape}",
            MALFORMED,
        )
    blocks = -(-ins // block)
    packed = _counted(node, "bytes of weights", _bytes(node, 1, "weights"), outs * blocks * block * bits // 8)
    steps = _fields(packed, bits, outs * blocks, block).reshape(outs, blocks, block)
    scales = _counted(node, "scales", _scales(node, build, 2), outs * blocks).reshape(outs, blocks, 1)
    zeros = _zero_points(node, bits, outs, blocks)
    real = ((steps - zeros) * scales.astype(np.float64)).astype(np.float32)
    weights = build.constant(real.reshape(outs, -1)[:, :ins], f"{node.name}/weights")
    return [build.add1(Dense(), [a, weights] if bias is None else [a, weights, bias])]


def _zero_points(node: OnnxNode, bits: int, outs: int, blocks: int) -> Array:
    """One for each block: packed like the weights, real numbers, or the middle of the range."""
    zero = node.optional(3)
    if zero is None:
        return np.full((outs, blocks, 1), 1 << (bits - 1), np.int64)
    if zero.dtype.is_float:
        values = node.const(3)
        if not np.isfinite(values).all():
            raise ModelError(
                f"MatMulNBits node {node.name!r} has a zero point that is not a finite number", MALFORMED
            )
        return _counted(node, "zero points", values, outs * blocks).reshape(outs, blocks, 1)
    row = (blocks * bits + 7) // 8
    packed = _counted(node, "bytes of zero points", _bytes(node, 3, "zero points"), outs * row)
    return _fields(packed, bits, outs, blocks).reshape(outs, blocks, 1)


@onnx_op("GatherBlockQuantized", domain=MICROSOFT)
def read_gather_blocks(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Slices of a table, such as rows of an embedding; its scales are in blocks along ``quantize_axis``."""
    data, scales = node.const(0), _scales(node, build, 2)
    narrow = build.kind(node.input(0))
    if not data.ndim:
        raise ModelError(f"GatherBlockQuantized node {node.name!r} has a table without axes", MALFORMED)
    middle = 0
    if narrow is DType.UINT8:
        bits = bits_of(node)
        middle = 1 << (bits - 1)
        data = _unpacked_rows(data, bits)
    elif isinstance(narrow, DType):
        raise ModelError(
            f"GatherBlockQuantized node {node.name!r} has a table of type {narrow.value}",
            "int4, uint4 and packed uint8 are allowed",
        )
    else:
        bits = narrow.bits
    axis, block = from_front(int(node.attr("quantize_axis", 1)), data.ndim), block_size(node, 128)
    blocks = -(-data.shape[axis] // block)
    shape = (*data.shape[:axis], blocks, *data.shape[axis + 1 :])
    if scales.shape != shape:
        raise ModelError(
            f"GatherBlockQuantized node {node.name!r} has scales of shape {scales.shape}, not {shape}",
            MALFORMED,
        )
    zeros = np.full(shape, middle, np.int64)
    if node.optional(3) is not None:
        zeros = node.const(3)
        if narrow is DType.UINT8:
            zeros = _unpacked_rows(_bytes(node, 3, "zero points"), bits)[..., : shape[-1]]
        if zeros.shape != shape:
            raise ModelError(
                f"{node.op_type} node {node.name!r} has zero points of shape {zeros.shape}, not {shape}",
                MALFORMED,
            )
    spread = [np.repeat(part, block, axis=axis) for part in (zeros.astype(np.int64), scales)]
    zeros, wide = (np.take(part, range(data.shape[axis]), axis=axis) for part in spread)
    real = ((data.astype(np.int64) - zeros) * wide.astype(np.float64)).astype(np.float32)
    table = build.constant(real, f"{node.name}/table")
    return [gather(build, table, node.input(1), int(node.attr("gather_axis", 0)))]


def _unpacked_rows(data: Array, bits: int) -> Array:
    """The numbers in the bytes of the last axis."""
    rows = int(np.prod(data.shape[:-1], dtype=np.int64))
    columns = data.shape[-1] * 8 // bits
    return _fields(data, bits, rows, columns).reshape(*data.shape[:-1], columns)
