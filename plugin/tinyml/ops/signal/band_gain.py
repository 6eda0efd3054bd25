# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NoiseReduction, Pcan and BandLog: from the energy of bands to features, in integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import MALFORMED, Builder, TfliteNode, tflite_custom_op
from tinyml.ops.shared.flexbuffer_options import option
from tinyml.ops.shared.operands import not_empty, of_rank, of_type, present
from tinyml.ops.signal import band_arithmetic
from tinyml.ops.signal.band_arithmetic import Smoothing

GAINS = 125
"""Numbers in TensorFlow Lite Micro's table of gains: two, then four for each number of bits from 2 to 32."""


def noise_of_each_band(layer: Layer) -> bool:
    """Signal and noise have the same number of bands."""
    return layer.input(0).shape == layer.input(1).shape


PAIR = (present(2), of_rank(0, 1), not_empty(0), of_type(0, DType.UINT32), of_type(1, DType.UINT32))


@dataclass(frozen=True)
class NoiseReduction(Op):
    """Signal and estimate of the noise to the signal without noise and the next estimate."""

    operands = (*PAIR, noise_of_each_band)
    smoothing: Smoothing

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        type_ = TensorType(given(inputs, 0).shape, DType.UINT32)
        return type_, type_

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return band_arithmetic.without_noise(given(inputs, 0), given(inputs, 1), self.smoothing)


class NoiseReductionLoop(Kernel[NoiseReduction]):
    """Products of 64 bits."""

    name = "tinyml_noise_reduction"
    library = Library.PORTABLE
    sources = ("signal/bands.c",)

    def emit(self, layer: Layer[NoiseReduction], sheet: Sheet) -> None:
        how = layer.op.smoothing
        sheet.include("<tinyml/bands.h>")
        members = {
            ".shares": f"{{{how.even[0]}, {how.odd[0]}}}",
            ".rests": f"{{{how.even[1]}, {how.odd[1]}}}",
            ".least": how.least,
            ".bits": how.bits,
            ".noise_bits": how.noise_bits,
            ".clamps": c.boolean(how.clamps),
        }
        params = sheet.record("struct tinyml_smoothing", "params", members)
        places = ", ".join((sheet.x(0), sheet.x(1), sheet.y(0), sheet.y(1)))
        sheet.line(f"tinyml_noise_reduction(&{params}, {layer.output.elements}, {places});")


def parabolas(layer: Layer[Pcan]) -> bool:
    """There is a parabola, of three numbers, for each number of bits from 0 to 32."""
    return layer.input(2).shape == (33, 3) and layer.input(2).dtype is DType.INT16


@dataclass(frozen=True)
class Pcan(Op):
    """The signal divided by a power of the noise: per-channel amplitude normalisation."""

    operands = (*PAIR, present(3), noise_of_each_band, parabolas)
    shift: int = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(given(inputs, 0).shape, DType.UINT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        signal, noise, gains = (given(inputs, i) for i in range(3))
        return (band_arithmetic.with_gain(signal, noise, gains, self.shift),)


class PcanLoop(InPlace[Pcan]):
    """A parabola and a product of 64 bits."""

    name = "tinyml_pcan"
    library = Library.PORTABLE
    sources = ("signal/bands.c",)

    def emit(self, layer: Layer[Pcan], sheet: Sheet) -> None:
        sheet.include("<tinyml/bands.h>")
        sheet.line(
            f"tinyml_pcan({sheet.x(2)}, {layer.op.shift}, {layer.output.elements}, {sheet.x(0)}, "
            f"{sheet.x(1)}, {sheet.y()});"
        )


@dataclass(frozen=True)
class BandLog(Op):
    """``scale`` times the natural logarithm of the input, enlarged by ``up`` bits; at most 32767."""

    operands = (present(1), of_rank(0, 1), not_empty(0), of_type(0, DType.UINT32))
    up: int = 0
    scale: int = 1

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(given(inputs, 0).shape, DType.INT16),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0) << np.uint32(self.up)
        return (np.minimum(band_arithmetic.logarithm(x, self.scale), 0x7FFF).astype(np.int16),)


class BandLogLoop(Kernel[BandLog]):
    """A table of 130 numbers in flash, straight between them."""

    name = "tinyml_band_logs"
    library = Library.PORTABLE
    sources = ("signal/bands.c",)

    def emit(self, layer: Layer[BandLog], sheet: Sheet) -> None:
        sheet.include("<tinyml/bands.h>")
        curve = sheet.table("curve", band_arithmetic.log_curve())
        sheet.line(
            f"tinyml_band_logs({curve}, {layer.op.up}, {layer.op.scale}, {layer.output.elements}, "
            f"{sheet.x()}, {sheet.y()});"
        )


register_kernels(NoiseReduction, NoiseReductionLoop())
register_kernels(Pcan, PcanLoop())
register_kernels(BandLog, BandLogLoop())


@tflite_custom_op("SignalFilterBankSpectralSubtraction")
def read_noise_reduction(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """The estimate of the noise is state of the model; at first it is 0."""
    share = 0xFFFFFFFF
    smoothing = Smoothing(
        (option(node, "smoothing", high=share), option(node, "one_minus_smoothing", high=share)),
        (
            option(node, "alternate_smoothing", high=share),
            option(node, "alternate_one_minus_smoothing", high=share),
        ),
        option(node, "min_signal_remaining", high=share),
        option(node, "spectral_subtraction_bits", high=31),
        option(node, "smoothing_bits", high=31),
        bool(option(node, "clamping", high=1)),
    )
    x = node.input(0)
    noise = build.state(f"{build.scope}/noise", TensorType(x.shape, DType.UINT32))
    cleaned, estimate = build.add(NoiseReduction(smoothing), [x, noise])
    build.update(noise, estimate)
    return [cleaned, estimate]


@tflite_custom_op("SignalPCAN")
def read_pcan(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    table = node.const(2)
    if table.dtype != np.int16 or table.shape != (GAINS,):
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: its table of gains has {table.size} numbers of "
            f"{table.dtype}, not {GAINS} of int16",
            MALFORMED,
        )
    rows = [(table[0], 0, 0), (table[1], 0, 0)]
    rows += [tuple(table[4 * bits - 6 : 4 * bits - 3]) for bits in range(2, 33)]
    gains = build.constant(np.array(rows, np.int16))
    return [build.add1(Pcan(option(node, "snr_shift", high=63)), [node.input(0), node.input(1), gains])]


@tflite_custom_op("SignalFilterBankLog")
def read_log(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    op = BandLog(option(node, "input_correction_bits", high=31), option(node, "output_scale"))
    return [build.add1(op, [node.input(0)])]
