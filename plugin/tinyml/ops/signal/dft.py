# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dft: the discrete Fourier transform along an axis; the last axis holds real and imaginary parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.axes import normalized
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.operands import not_empty, numbers_from, present
from tinyml.ops.signal.fft import FftTables, radices


def complex_or_real(layer: Layer[Dft]) -> bool:
    """The last axis is 1 (real) or 2 (complex) numbers long, and the transform is along another one."""
    x, axis = layer.input(0).shape, layer.op.axis
    return len(x) >= 2 and x[-1] in (1, 2) and 0 <= axis < len(x) - 1


@dataclass(frozen=True)
class Dft(Op):
    """``length`` points. ``onesided``: half a spectrum of a real signal, or back from one to it."""

    operands = (present(1), not_empty(0), complex_or_real, numbers_from(1, "length"))
    axis: int = 1
    length: int = 1
    inverse: bool = False
    onesided: bool = False

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        shape = list(x.shape)
        shape[self.axis] = self.length // 2 + 1 if self.onesided and not self.inverse else self.length
        shape[-1] = 1 if self.onesided and self.inverse else 2
        return (TensorType(tuple(shape), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0).astype(np.float64)
        signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
        if self.onesided and self.inverse:
            y = np.fft.irfft(signal, self.length, self.axis)
        else:
            run = np.fft.ifft if self.inverse else np.fft.fft
            y = np.take(run(signal, self.length, self.axis), range(layer.output.shape[self.axis]), self.axis)
        parts = [y.real] if layer.output.shape[-1] == 1 else [y.real, y.imag]
        return (np.stack(parts, -1).astype(layer.output.dtype.numpy),)


class DftLoops(Kernel[Dft]):
    """A sum for each point, with one period of sine and cosine in flash, where there is no fast transform."""

    name = "Fourier sums"
    constraints = (real_numbers,)

    def emit(self, layer: Layer[Dft], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        kind, n = x.dtype, op.length
        angles = 2 * np.pi * np.arange(n) / n * (1 if op.inverse else -1)
        cosines = sheet.table("cos", np.cos(angles).astype(kind.numpy))
        sines = sheet.table("sin", np.sin(angles).astype(kind.numpy))
        half_back = op.onesided and op.inverse
        outer = tuple(1 if axis in (op.axis, len(x.shape) - 1) else e for axis, e in enumerate(x.shape))
        walks = {"x": c.Walk(c.contiguous(x.shape)), "y": c.Walk(c.contiguous(y.shape))}
        x_step, y_step = (c.contiguous(t.shape)[op.axis] for t in (x, y))
        known = min(x.shape[op.axis], n // 2 + 1 if half_back else n)
        with (
            sheet.loops(c.nest(outer, walks)) as index,
            sheet.loop("k", y.shape[op.axis]),
        ):
            sheet.line(f"{kind.c} re = 0;")
            if y.shape[-1] == 2:
                sheet.line(f"{kind.c} im = 0;")
            sheet.line()
            with sheet.loop("t", known):
                sheet.line(f"const {kind.c} *p = &{sheet.x()}[{index['x']} + t * {x_step}];")
                sheet.line(f"const int32_t turn = t * k % {n};")
                self._add(sheet, x.shape[-1] == 2, y.shape[-1] == 2, half_back, n, cosines, sines)
            scale = f" / {sheet.number(n, kind)}" if op.inverse else ""
            place = f"{index['y']} + k * {y_step}"
            sheet.line(f"{sheet.y()}[{place}] = re{scale};")
            if y.shape[-1] == 2:
                sheet.line(f"{sheet.y()}[{place} + 1] = im{scale};")

    def _add(
        self, sheet: Sheet, complex_x: bool, complex_y: bool, half: bool, n: int, cosines: str, sines: str
    ) -> None:
        """One term; of half a spectrum every term but the first (and a middle one) counts twice."""
        cos, sin = f"{cosines}[turn]", f"{sines}[turn]"
        real = f"p[0] * {cos} - p[1] * {sin}" if complex_x else f"p[0] * {cos}"
        if half:
            middle = f" || t == {n // 2}" if n % 2 == 0 else ""
            # the first and the middle term are real, whatever the file says
            sheet.line(f"re += t == 0{middle} ? p[0] * {cos} : 2 * ({real});")
        else:
            sheet.line(f"re += {real};")
        if complex_y:
            sheet.line(f"im += p[0] * {sin} + p[1] * {cos};" if complex_x else f"im += p[0] * {sin};")


def float_numbers(layer: Layer) -> bool:
    """Input and output are float32."""
    return layer.input(0).dtype is DType.FLOAT32


def innermost_axis(layer: Layer[Dft]) -> bool:
    """The transform runs along the second-to-last axis."""
    return layer.op.axis == len(layer.input(0).shape) - 2


def smooth_length(layer: Layer[Dft]) -> bool:
    """The length is 2 to 65,535 and has no prime factor above 31."""
    return 2 <= layer.op.length <= 0xFFFF and radices(layer.op.length) is not None


def not_from_half(layer: Layer[Dft]) -> bool:
    """The transform is not the inverse of half a spectrum."""
    return not (layer.op.inverse and layer.op.onesided)


class DftFast(Kernel[Dft]):
    """A fast Fourier transform of mixed radix, in the memory of the output."""

    name = "tinyml_fft_f32"
    library = Library.PORTABLE
    sources = ("signal/fft_f32.c",)
    constraints = (float_numbers, innermost_axis, smooth_length, not_from_half)

    def scratch_bytes(self, layer: Layer[Dft], target: Target) -> int:
        """Half a spectrum of an odd number of samples is computed as a whole one."""
        op = layer.op
        return 8 * op.length if op.onesided and op.length % 2 else 0

    def emit(self, layer: Layer[Dft], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        n = op.length
        pairs = x.shape[-1] == 1 and n % 2 == 0 and not op.inverse
        plan = FftTables(n // 2 if pairs else n, pairs, op.inverse)
        members = {f".{key}": sheet.table(key, values) for key, values in plan.tables().items()}
        sheet.include("<tinyml/fft.h>")
        params = sheet.record(
            "struct tinyml_fft_f32", "params", {**members, **{f".{k}": v for k, v in plan.numbers().items()}}
        )
        function = "half" if pairs else "of_real" if x.shape[-1] == 1 else "complex"
        aside = self.scratch_bytes(layer, sheet.target) > 0
        steps = {"x": x.shape[-2] * x.shape[-1], "y": y.shape[-2] * y.shape[-1]}
        count = int(np.prod(x.shape[:-2], dtype=np.int64))
        with sheet.loop("i", count):
            sheet.line(f"float *spectrum = {sheet.y()} + i * {steps['y']};")
            work = sheet.scratch if aside else "spectrum"
            signal = f"{sheet.x()} + i * {steps['x']}"
            sheet.line()
            sheet.line(f"tinyml_fft_{function}_f32(&{params}, {signal}, {min(x.shape[-2], n)}, {work});")
            if aside:
                sheet.include("<string.h>")
                sheet.line(f"memcpy(spectrum, {work}, {4 * steps['y']});")
            elif pairs and not op.onesided:
                with sheet.loop("k", n, start=n // 2 + 1):
                    sheet.line(f"spectrum[2 * k] = spectrum[2 * ({n} - k)];")
                    sheet.line(f"spectrum[2 * k + 1] = -spectrum[2 * ({n} - k) + 1];")
            if op.inverse:
                with sheet.loop("k", 2 * n):
                    sheet.line(f"spectrum[k] *= {sheet.number(1 / n)};")


register_kernels(Dft, DftFast(), DftLoops())


@onnx_op("DFT")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """The axis is an attribute before opset 20, an input since."""
    x = node.input(0)
    rank = len(x.shape)
    if node.opset >= 20:
        asked = -2 if node.optional(2) is None else int(node.const(2).reshape(()))
    else:
        asked = int(node.attr("axis", 1))
    axis = normalized([asked], rank)[0]
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    parts = x.shape[-1]
    if axis == rank - 1 or parts not in (1, 2) or (onesided and parts != (2 if inverse else 1)):
        raise UnsupportedError(
            f"DFT node {node.name!r} along axis {asked} of shape {x.shape}"
            + (", one-sided" if onesided else ""),
            "real signals end in an axis of 1, complex ones in an axis of 2",
        )
    length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    if node.optional(1) is not None:
        length = int(node.const(1).reshape(()))
    return [build.add1(Dft(axis, length, inverse, onesided), [x])]
