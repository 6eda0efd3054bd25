# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Executes the command stream of an Ethos-U55 or U65 in numpy, to check the numbers without an NPU.

It follows the register interface as Vela's own sources describe it (``ethos_u55_regs``), operator by operator
and not block by block. Supported: convolution, depthwise convolution, maximum and average pools, element-wise
operators on int8 with any scales, tables of 256 entries, copies; on int32 what softmax is made of. Anything
else raises ``NotExecuted``: int16, upscaling. For Ethos-U85 see ``npu_u85``.

How int32 values are multiplied, Vela's sources say only by what they make of it: a product whose scale is
2**30 / 2**31 stands for gemmlowp's doubling high multiplication, and one with the scale 1 is a plain product.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Wide = npt.NDArray[np.int64]

REGISTERS = {
    0x100: "PAD_TOP", 0x101: "PAD_LEFT", 0x102: "PAD_RIGHT", 0x103: "PAD_BOTTOM", 0x104: "IFM_DEPTH",
    0x105: "IFM_PRECISION", 0x107: "UPSCALE", 0x109: "IFM_ZERO", 0x10A: "IFM_WIDTH0", 0x10B: "IFM_HEIGHT0",
    0x10C: "IFM_HEIGHT1", 0x10F: "IFM_REGION", 0x111: "OFM_WIDTH", 0x112: "OFM_HEIGHT", 0x113: "OFM_DEPTH",
    0x114: "OFM_PRECISION", 0x117: "BLOCK_DEPTH", 0x118: "OFM_ZERO", 0x11A: "OFM_WIDTH0",
    0x11B: "OFM_HEIGHT0", 0x11C: "OFM_HEIGHT1", 0x11F: "OFM_REGION", 0x120: "KERNEL_WIDTH",
    0x121: "KERNEL_HEIGHT", 0x122: "KERNEL_STRIDE", 0x125: "ACTIVATION", 0x126: "LOWEST", 0x127: "HIGHEST",
    0x128: "WEIGHT_REGION", 0x129: "SCALE_REGION", 0x130: "DMA_FROM_REGION", 0x131: "DMA_TO_REGION",
    0x180: "BROADCAST", 0x181: "SCALAR", 0x185: "IFM2_PRECISION", 0x189: "IFM2_ZERO", 0x18A: "IFM2_WIDTH0",
    0x18B: "IFM2_HEIGHT0", 0x18C: "IFM2_HEIGHT1", 0x18F: "IFM2_REGION",
}  # fmt: skip
WIDE_REGISTERS = {
    **{0x000 + tile: f"IFM_BASE{tile}" for tile in range(4)},
    **{0x010 + tile: f"OFM_BASE{tile}" for tile in range(4)},
    **{0x080 + tile: f"IFM2_BASE{tile}" for tile in range(4)},
    0x004: "IFM_STRIDE_X", 0x005: "IFM_STRIDE_Y", 0x006: "IFM_STRIDE_C", 0x014: "OFM_STRIDE_X",
    0x015: "OFM_STRIDE_Y", 0x016: "OFM_STRIDE_C", 0x084: "IFM2_STRIDE_X", 0x085: "IFM2_STRIDE_Y",
    0x086: "IFM2_STRIDE_C", 0x020: "WEIGHT_BASE", 0x021: "WEIGHT_LENGTH", 0x022: "SCALE_BASE",
    0x023: "SCALE_LENGTH", 0x030: "DMA_FROM", 0x031: "DMA_TO", 0x032: "DMA_LENGTH",
}  # fmt: skip
SCALES = {0x024: "OFM_SCALE", 0x025: "OPA_SCALE", 0x026: "OPB_SCALE"}  # a factor, and a shift as parameter
STOP, IRQ, CONV, DEPTHWISE, POOL, ELEMENTWISE, COPY, COPY_WAIT, KERNEL_WAIT = 0, 1, 2, 3, 5, 6, 16, 17, 18
MAX_POOL, AVERAGE_POOL, SUM_POOL = 0, 1, 2
MUL, ADD, SUB, MINIMUM, MAXIMUM, LRELU, ABS, CLZ, SHR, SHL = range(10)
TYPES: dict[tuple[int, int], type[np.integer[Any]]] = {
    (0, 0): np.uint8,
    (0, 1): np.int8,
    (2, 1): np.int32,
}  # by the bits of a precision register: size, sign
HALF = 1 << 30  # the factor of scales that are powers of two
TIE_TWICE, TRUNCATE, TIE_UP = 0, 1, 2
INSIDE = 0x100  # in a region: the NPU's own memory
FIRST_TABLE = 16  # activations from here on are look-ups
INPUTS = 8  # of a micro-block
SUBKERNEL = 8  # the largest part of a kernel that is computed at once


class NotExecuted(Exception):
    """The stream requires something that is not simulated."""


@dataclass(frozen=True)
class Walk:
    """How an NPU goes through weights."""

    multiple: int = 4  # elements of a kernel are padded to one
    snake: bool = False  # odd rows of a kernel and odd blocks of outputs are read backwards
    depth: int = 32  # inputs at a time, if they come before the elements of the kernel
    inputs: int = INPUTS  # the same if they come after them
    lanes: int | None = None  # channels of a depthwise micro-block, if they are not those of others


@dataclass
class Npu:
    """Regions of memory and registers."""

    regions: dict[int, Bytes]
    channels: int = 8  # outputs of a micro-block: 4 in ethos-u55-32
    walk: Walk = Walk()
    bias_bytes: int = 5  # of ten that each channel's bias and scale take
    registers: dict[str, int] = field(default_factory=dict)
    shifts: dict[str, int] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)
    tables: Bytes = field(default_factory=lambda: np.zeros(2048, np.uint8))  # eight of 256 bytes

    def run(self, payload: bytes) -> None:
        """Execute what the driver is given; its header ends after 32 bytes."""
        words = iter(struct.unpack(f"<{len(payload) // 4}I", payload)[8:])
        for word in words:
            code, parameter = word & 0x3FF, word >> 16
            if word & 0xC000:
                self._set_wide(code, parameter, next(words))
            elif code in REGISTERS:
                self.registers[REGISTERS[code]] = parameter
            elif code == STOP:
                return
            else:
                self._operate(code, parameter)

    def _set_wide(self, code: int, parameter: int, value: int) -> None:
        if code in SCALES:
            self.registers[SCALES[code]], self.shifts[SCALES[code]] = value, parameter & 0x3F
        elif code in WIDE_REGISTERS:
            self.registers[WIDE_REGISTERS[code]] = value | (parameter & 0xFF) << 32

    def _operate(self, code: int, parameter: int) -> None:
        if code == COPY:
            self._copy()
        elif code in (CONV, DEPTHWISE):
            self._write(self._scaled_by_channel(self._convolved(depthwise=code == DEPTHWISE)))
            self.executed.append("depthwise" if code == DEPTHWISE else "conv")
        elif code == POOL:
            self._write(self._pooled(parameter))
            self.executed.append("pool")
        elif code == ELEMENTWISE:
            self._write(self._combined(parameter))
            self.executed.append("elementwise")

    # --- memory --------------------------------------------------------------------------------------

    def _copy(self) -> None:
        r = self.registers
        start, end = r["DMA_FROM"], r["DMA_FROM"] + r["DMA_LENGTH"]
        content = self.regions[r["DMA_FROM_REGION"]][start:end].copy()
        if r["DMA_TO_REGION"] & INSIDE:  # tables are the last bytes of the NPU's own memory
            at = r["DMA_TO"] % len(self.tables)
            self.tables[at : at + len(content)] = content
        else:
            self.regions[r["DMA_TO_REGION"]][r["DMA_TO"] : r["DMA_TO"] + len(content)] = content

    def _addresses(
        self, which: str, shape: tuple[int, int, int], blocks: bool, element: type[np.integer[Any]]
    ) -> Wide:
        """Of the bytes [y, x, channel, byte] of a tensor in four tiles; with ``blocks`` of 16 channels."""
        height, width, depth = shape
        size = np.dtype(element).itemsize
        r = self.registers
        y, x, c = np.ogrid[:height, :width, :depth]
        right = x > r[f"{which}_WIDTH0"]
        low = np.where(right, y > r[f"{which}_HEIGHT1"], y > r[f"{which}_HEIGHT0"])
        bases = np.array([r[f"{which}_BASE{tile}"] for tile in range(4)], np.int64)
        base = bases[right + 2 * low]
        y = y - np.where(low, np.where(right, r[f"{which}_HEIGHT1"], r[f"{which}_HEIGHT0"]) + 1, 0)
        x = x - np.where(right, r[f"{which}_WIDTH0"] + 1, 0)
        place = base + y * r[f"{which}_STRIDE_Y"] + x * r[f"{which}_STRIDE_X"]
        inside = c // 16 * r[f"{which}_STRIDE_C"] + c % 16 * size if blocks else c * size
        return np.asarray((place + inside)[..., np.newaxis] + np.arange(size), np.int64)

    def _read(self, which: str, height: int, width: int, depth: int) -> Wide:
        """A tensor, without its zero point."""
        precision = self.registers[f"{which}_PRECISION"]
        element = _element(precision >> 2 & 3, precision & 1)
        places = self._addresses(which, (height, width, depth), bool(precision & 0x40), element)
        stored = np.ascontiguousarray(self.regions[self.registers[f"{which}_REGION"]][places]).view(element)
        return stored[..., 0].astype(np.int64) - _signed(self.registers[f"{which}_ZERO"])

    def _write(self, values: Wide) -> None:
        """Add the zero point, clamp, store."""
        r = self.registers
        table = (r["ACTIVATION"] & 0x1F) - FIRST_TABLE
        if r["ACTIVATION"] & 0xFFF and not 0 <= table < 8:
            raise NotExecuted(f"activation {r['ACTIVATION'] & 0xFFF}")
        precision = r["OFM_PRECISION"]
        element = _element(precision >> 1 & 3, precision & 1)
        values = values + _signed(r["OFM_ZERO"])
        if table >= 0 or element is not np.int32:  # the limits have 16 bits
            values = np.clip(values, _signed(r["LOWEST"]), _signed(r["HIGHEST"]))
        rows, columns, depth = values.shape
        places = self._addresses("OFM", (rows, columns, depth), bool(precision & 0x40), element)
        if table >= 0:
            entries = self.tables[256 * table :][: 256 * np.dtype(element).itemsize].view(element)
            values = entries[values + 128 * (precision & 1)].astype(np.int64)
        limits = np.iinfo(element)
        assert limits.min <= values.min() <= values.max() <= limits.max, "an overflow"
        stored = values.astype(element)[..., np.newaxis].view(np.uint8)
        self.regions[r["OFM_REGION"]][places] = stored

    # --- windows ---------------------------------------------------------------------------------------

    @property
    def _output(self) -> tuple[int, int, int]:
        r = self.registers
        return r["OFM_HEIGHT"] + 1, r["OFM_WIDTH"] + 1, r["OFM_DEPTH"] + 1

    def _geometry(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Stride, dilation and elements of the kernel, each as rows and columns."""
        r = self.registers
        bits = r["KERNEL_STRIDE"]
        strides = (1 + (bits >> 1 & 1) + 2 * (bits >> 9 & 7), 1 + (bits & 1) + 2 * (bits >> 6 & 7))
        dilation = (1 + (bits >> 4 & 1), 1 + (bits >> 3 & 1))
        kernel = (r["KERNEL_HEIGHT"] // dilation[0] + 1, r["KERNEL_WIDTH"] // dilation[1] + 1)
        return strides, dilation, kernel

    def _windows(self, depth: int, outside: int) -> Iterator[tuple[int, int, Wide]]:
        """For each element of the kernel the inputs under it, [y, x, channel] of the output."""
        r = self.registers
        if r.get("UPSCALE", 0):
            raise NotExecuted("upscaling")
        (rows, columns, _), (strides, dilation, kernel) = self._output, self._geometry()
        height = (rows - 1) * strides[0] + r["KERNEL_HEIGHT"] + 1 - r["PAD_TOP"] - r["PAD_BOTTOM"]
        width = (columns - 1) * strides[1] + r["KERNEL_WIDTH"] + 1 - r["PAD_LEFT"] - r["PAD_RIGHT"]
        x = self._read("IFM", height, width, depth)
        border = ((r["PAD_TOP"], r["PAD_BOTTOM"]), (r["PAD_LEFT"], r["PAD_RIGHT"]), (0, 0))
        x = np.pad(x, border, constant_values=outside)
        for ky in range(kernel[0]):
            for kx in range(kernel[1]):
                down, right = ky * dilation[0], kx * dilation[1]
                ends = down + (rows - 1) * strides[0] + 1, right + (columns - 1) * strides[1] + 1
                yield ky, kx, x[down : ends[0] : strides[0], right : ends[1] : strides[1]]

    def _convolved(self, depthwise: bool) -> Wide:
        rows, columns, channels = self._output
        depth = self.registers["IFM_DEPTH"] + 1
        weights = self._weights(channels, depth, depthwise)
        total = np.zeros((rows, columns, channels), np.int64)
        for ky, kx, x in self._windows(channels if depthwise else depth, 0):
            total += x * weights[:, ky, kx, 0] if depthwise else x @ weights[:, ky, kx].T
        return total

    def _weights(self, channels: int, depth: int, depthwise: bool) -> Wide:
        """[output channel, row, column, input channel], from their compressed form."""
        from ethosu import mlw_codec

        r = self.registers
        stored = self.regions[r["WEIGHT_REGION"]][r["WEIGHT_BASE"] : r["WEIGHT_BASE"] + r["WEIGHT_LENGTH"]]
        decoded = np.array(mlw_codec.decode(bytearray(stored.tobytes())), np.int64)
        _, dilation, kernel = self._geometry()
        order = list(
            traversal(
                (channels, *kernel, 1 if depthwise else depth),
                r["BLOCK_DEPTH"] + 1,
                self.channels,
                bool(r["KERNEL_STRIDE"] & 4),
                depthwise,
                (SUBKERNEL // dilation[0], SUBKERNEL // dilation[1]),
                self.walk,
            )
        )
        if len(decoded) < len(order):
            raise AssertionError(f"{len(decoded)} weights instead of {len(order)}")
        weights = np.zeros((channels, *kernel, 1 if depthwise else depth), np.int64)
        for value, place in zip(decoded, order, strict=False):
            if place is not None:
                weights[place] = value
        return weights

    # --- scales ----------------------------------------------------------------------------------------

    def _scaled_by_channel(self, total: Wide) -> Wide:
        """A bias of 40 bits, a factor of 32 and a shift of 6 for each channel."""
        r = self.registers
        if r["OFM_PRECISION"] & 0x100:
            raise NotExecuted("one scale for all channels of a convolution")
        start = r["SCALE_BASE"]
        table = self.regions[r["SCALE_REGION"]][start : start + 10 * total.shape[-1]].reshape(-1, 10)
        wide = self.bias_bytes
        biases = [int.from_bytes(row[:wide].tobytes(), "little", signed=True) for row in table]
        factors = [int.from_bytes(row[wide : wide + 4].tobytes(), "little") for row in table]
        shifts = [int(row[wide + 4]) & 0x3F for row in table]
        total = total + np.array(biases, np.int64)
        scales = zip(factors, shifts, strict=True)
        columns = [self._rescaled(total[..., i], *scale) for i, scale in enumerate(scales)]
        return np.stack(columns, -1)

    def _pooled(self, mode: int) -> Wide:
        depth = self._output[2]
        if mode == MAX_POOL:
            lowest = -(1 << 40)
            return np.maximum.reduce([x for _, _, x in self._windows(depth, lowest)])
        if mode == SUM_POOL:  # of all channels
            inputs = self.registers["IFM_DEPTH"] + 1
            total = sum((x for _, _, x in self._windows(inputs, 0)), np.zeros(1, np.int64))
            return self._scaled(total.sum(axis=-1, keepdims=True))
        total = sum((x for _, _, x in self._windows(depth, 0)), np.zeros(1, np.int64))
        r = self.registers
        if not r["OFM_PRECISION"] & 0x100:
            raise NotExecuted("an average pool without a scale")
        return self._scaled(total)

    def _combined(self, mode: int) -> Wide:
        r = self.registers
        shape = self._output
        a = self._read("IFM", *shape)
        if mode == ABS:
            return self._scaled(np.abs(a))
        if mode == CLZ:
            return np.vectorize(lambda value: 32 - int(value).bit_length(), otypes=[np.int64])(a)
        if mode == LRELU:
            raise NotExecuted("leaky ReLU")
        bits = r["BROADCAST"]
        if bits & 0x80:
            b: Wide = np.full(shape, _signed(r["SCALAR"]) - _signed(r["IFM2_ZERO"]), np.int64)
        else:
            extents = [1 if bits >> axis & 1 else extent for axis, extent in enumerate(shape)]
            b = np.broadcast_to(self._read("IFM2", *extents), shape)
        if bits & 0x40:
            a, b = b, a
        if mode == MUL:
            wide = r["IFM_PRECISION"] >> 2 & 3 == 2
            return self._multiplied(a, b) if wide else self._scaled(a * b)
        if mode == SHL:
            return a << b
        if mode == SHR:
            if r["OFM_PRECISION"] >> 14 != TIE_UP:
                raise NotExecuted("a shift that rounds otherwise")
            return (a + (1 << b >> 1)) >> b
        if mode in (MINIMUM, MAXIMUM):
            return self._scaled(np.minimum(a, b) if mode == MINIMUM else np.maximum(a, b))
        if mode in (ADD, SUB):
            a, b = self._operands(a, b)
            return self._scaled(a + b if mode == ADD else a - b)
        raise NotExecuted(f"element-wise operator {mode}")

    def _multiplied(self, a: Wide, b: Wide) -> Wide:
        """Products of int32."""
        factor, shift = self.registers["OFM_SCALE"], self.shifts["OFM_SCALE"]
        product: Any = a.astype(object) * b
        if (factor, shift) == (1, 0):
            return np.asarray(product, np.int64)
        if factor != HALF or shift > 31:
            raise NotExecuted("a product of int32 that is not scaled by a power of two")
        return np.asarray(_high(product << (31 - shift)), np.int64)

    def _operands(self, a: Wide, b: Wide) -> tuple[Wide, Wide]:
        """Both scaled with 16 bits, or one exactly and the other by a power of two."""
        r = self.registers
        mode = r["IFM_PRECISION"] >> 8 & 3
        if mode == 0:
            return a * (r["OPA_SCALE"] & 0xFFFF), b * (r["OPB_SCALE"] & 0xFFFF)
        factor, shift = r["OPA_SCALE"], self.shifts["OPA_SCALE"]
        shifted, exact = (b, a) if mode == 1 else (a, b)
        shifted, exact = shifted << 19, scaled(exact, factor, shift, TIE_TWICE)
        return (exact, shifted) if mode == 1 else (shifted, exact)

    def _scaled(self, values: Wide) -> Wide:
        return self._rescaled(values, self.registers["OFM_SCALE"], self.shifts["OFM_SCALE"])

    def _rescaled(self, values: Wide, factor: int, shift: int) -> Wide:
        return scaled(values, factor, shift, self.registers["OFM_PRECISION"] >> 14)


def scaled(values: Wide, factor: int, shift: int, rounding: int) -> Wide:
    """values * factor / 2**shift. TFLite rounds after 31 bits, and again after the rest."""
    product: Any = values.astype(object) * factor
    if rounding == TRUNCATE:
        return np.asarray(np.where(product >= 0, product >> shift, -(-product >> shift)), np.int64)
    if rounding == TIE_TWICE and shift > 31:
        high, rest = _high(product), shift - 31
        half = (1 << rest) >> 1
        return np.asarray(np.where(high >= 0, (high + half) >> rest, -((-high + half) >> rest)), np.int64)
    return np.asarray((product + (1 << shift >> 1)) >> shift, np.int64)


def _high(product: Any) -> Any:
    """product / 2**31, rounded as gemmlowp's high multiplication does."""
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    return np.where(nudged >= 0, nudged >> 31, -(-nudged >> 31))


def traversal(
    shape: Sequence[int],
    block_depth: int,
    channels: int,
    kernel_first: bool,
    depthwise: bool,
    subkernel: tuple[int, int],
    walk: Walk,
) -> Iterator[tuple[int, int, int, int] | None]:
    """The order in which weights are stored; None is padding. ``shape`` as ``Npu._weights`` returns it."""
    outputs, height, width, inputs = shape
    input_block = 16 if kernel_first else walk.depth
    channels = walk.lanes or channels if depthwise else channels
    for first_output in range(0, outputs, block_depth):
        block = min(block_depth, outputs - first_output)
        starts = range(0, inputs, input_block)
        backwards = walk.snake and first_output // block_depth % 2
        for first_input in reversed(starts) if backwards else starts:
            depth = min(input_block, inputs - first_input)
            for top in range(0, height, subkernel[0]):
                for left in range(0, width, subkernel[1]):
                    rows, columns = min(height - top, subkernel[0]), min(width - left, subkernel[1])
                    elements = rows * columns
                    if kernel_first or depthwise:
                        elements = -(-elements // walk.multiple) * walk.multiple
                    outer, inner = (depth, walk.inputs) if kernel_first else (1, input_block)
                    if depthwise:
                        outer = inner = 1
                    for outer_at in range(0, outer, walk.inputs):
                        for output in range(0, block, channels):
                            for element in range(elements):
                                y, x = divmod(element, columns)
                                x = columns - 1 - x if walk.snake and y % 2 else x
                                for inner_at in range(0, inner, INPUTS):
                                    for o in range(channels):
                                        for i in range(1 if depthwise else INPUTS):
                                            out = first_output + output + o
                                            channel = first_input + outer_at + inner_at + i
                                            if out >= outputs or channel >= inputs or y >= rows:
                                                yield None
                                            else:
                                                yield out, top + y, left + x, channel


def _element(size: int, signed: int) -> type[np.integer[Any]]:
    if (size, signed) not in TYPES:
        raise NotExecuted(f"elements of {8 << size} bits")
    return TYPES[size, signed]


def _signed(value: int) -> int:
    """A parameter of 16 bits."""
    return value - 0x10000 if value & 0x8000 else value
