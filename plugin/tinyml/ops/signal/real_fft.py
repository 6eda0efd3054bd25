# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RealFft: the Fourier transform of real int16 signals and back, as TensorFlow Lite Micro computes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_custom_op
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.flexbuffer_options import option
from tinyml.ops.shared.operands import at_least_rank, not_empty, of_type, present
from tinyml.ops.signal import fft_s16
from tinyml.ops.signal.dft import Dft

SHORTEST, LONGEST = 4, 1 << 16


def power_of_two(layer: Layer[RealFft]) -> bool:
    """The length is a power of two from 4 to 65,536."""
    length = layer.op.length
    return SHORTEST <= length <= LONGEST and length & (length - 1) == 0


def fits(layer: Layer[RealFft]) -> bool:
    """Signals are at most as long as the transform; spectra have length / 2 + 1 complex numbers."""
    op, last = layer.op, layer.input(0).shape[-1]
    return last == op.length + 2 if op.inverse else last <= op.length


@dataclass(frozen=True)
class RealFft(Op):
    """Along the last axis. A spectrum is pairs of real and imaginary parts, 1/length of the true one."""

    operands = (present(1), not_empty(0), at_least_rank(0, 1), of_type(0, DType.INT16), power_of_two, fits)
    length: int = SHORTEST
    inverse: bool = False

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType((*x.shape[:-1], self.length + (0 if self.inverse else 2)), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        rows = x.reshape(-1, x.shape[-1])
        with np.errstate(over="ignore"):  # sums wrap, as in the C
            if self.inverse:
                y = fft_s16.real_inverse(rows.reshape(len(rows), -1, 2))
            else:
                y = fft_s16.real_transform(np.pad(rows, ((0, 0), (0, self.length - rows.shape[1]))))
        return (y.reshape(layer.output.shape),)


class RealFftTables(Kernel[RealFft]):
    """A fast transform with its tables in flash."""

    name = "tinyml_rfft_s16"
    library = Library.PORTABLE
    sources = ("signal/fft_s16.c",)

    def scratch_bytes(self, layer: Layer[RealFft], target: Target) -> int:
        return 2 * layer.op.length

    def emit(self, layer: Layer[RealFft], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        members = {
            f".{key}": sheet.table(key, values) for key, values in fft_s16.tables(op.length // 2).items()
        }
        sheet.include("<tinyml/fft.h>")
        params = sheet.record("struct tinyml_fft_s16", "params", {**members, ".points": op.length // 2})
        count = x.elements // x.shape[-1]
        function = "tinyml_irfft_s16" if op.inverse else "tinyml_rfft_s16"
        samples = "" if op.inverse else f" {x.shape[-1]},"

        def call(offset_x: str, offset_y: str) -> None:
            sheet.line(
                f"{function}(&{params}, {sheet.x()}{offset_x},{samples} {sheet.scratch}, "
                f"{sheet.y()}{offset_y});"
            )

        if count == 1:
            call("", "")
            return
        with sheet.loop("i", count):
            call(f" + i * {x.shape[-1]}", f" + i * {y.shape[-1]}")


register_kernels(RealFft, RealFftTables())


@tflite_custom_op("SignalRfft", "SignalIrfft")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """In int16, or in float, where it is an ordinary Fourier transform."""
    x, length, inverse = (
        node.input(0),
        option(node, "fft_length", SHORTEST, LONGEST),
        node.op_type == "SignalIrfft",
    )
    if x.dtype is DType.FLOAT32:
        return [_in_float(build, x, length, inverse)]
    if x.dtype is not DType.INT16 or x.quant is not None:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} on {x.dtype.value}", "int16 and float32 are supported"
        )
    if length & (length - 1):
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} in int16 with a length of {length}",
            "powers of two are supported, and any even length in float32",
        )
    return [build.add1(RealFft(length, inverse), [x])]


def _in_float(build: Builder, x: Tensor, length: int, inverse: bool) -> Tensor:
    """With the parts of a complex number on an axis of their own."""
    outer, last = x.shape[:-1], x.shape[-1]
    apart = (*outer, last // 2, 2) if inverse else (*outer, last, 1)
    parts = build.add1(Reshape(apart), [x])
    y = build.add1(Dft(len(outer), length, inverse, onesided=True), [parts])
    return build.add1(Reshape((*outer, length if inverse else length + 2)), [y])
