"""Dense: y = x · weightsᵀ + bias on the last axis; weights (out, in). Gemm and FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyml import c
from tinyml import fixed_point as fp
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Constraint, Cost, Kernel, Library, Sheet, register_kernels
from tinyml.ops import _helium as helium
from tinyml.ops._byte_weights import DenseByteWeights
from tinyml.ops._cmsis_dense import DENSE_KERNELS
from tinyml.ops._conv_records import (
    constant_weights,
    float_tensors,
    folded_bias,
    int8_tensors,
    one_weight_zero,
    symmetric_weights,
)
from tinyml.ops._int16_kernels import DenseInt16
from tinyml.ops._quant import (
    NO_CLAMP,
    Clamp,
    Multipliers,
    centred,
    clamp_range,
    finished,
    integer_layer,
    output_multipliers,
    per_channel,
    quant_of,
)
from tinyml.ops._stream import filter_stream, shrinking
from tinyml.targets import Target


@dataclass(frozen=True)
class Dense(Op):
    """Inputs: x (..., in), weights (out, in), optional bias (out)."""

    clamp: Clamp = NO_CLAMP
    round_once: bool = False  # else twice, as TensorFlow Lite does

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        return (TensorType((*x.shape[:-1], w.shape[0]), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, w = centred(layer, inputs, 0), centred(layer, inputs, 1, channel_axis=0)
        return (finished(x @ w.T, layer, inputs, self.clamp, self.round_once, multipliers),)

    def macs(self, layer: Layer) -> int:
        return layer.output.elements * layer.input(1).shape[1]

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        return integer_layer(self, inputs, outputs[0])


def multipliers(layer: Layer) -> Multipliers:
    """As for a convolution, except that TFLite multiplies the two per-tensor scales in float32."""
    weights = quant_of(layer.input(1))
    if weights.per_channel:
        return output_multipliers(layer)
    product = float(np.float32(quant_of(layer.input(0)).scale) * np.float32(weights.scale))
    multiplier, shift = fp.quantize_multiplier(product / quant_of(layer.output).scale)
    return np.array([multiplier], np.int32), np.array([shift], np.int32)


class DenseInt8(Kernel):
    """A row meets four filters at a time, in plain C; takes any weight zero point."""

    name = "tinyml_dense_s8"
    library = Library.PORTABLE
    sources = ("dense_s8.c",)
    cost = Cost(plain=(2.6, 45), dsp=(2.6, 45), mve=(2.6, 45))
    constraints: ClassVar[tuple[Constraint, ...]] = (int8_tensors, constant_weights, one_weight_zero)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, Dense)
        outputs, inputs = layer.input(1).shape
        low, high = clamp_range(op.clamp, layer.output)
        sheet.include("<tinyml/dense.h>")
        name = sheet.record(
            "struct tinyml_dense_s8",
            "params",
            {
                ".rows": layer.output.elements // outputs,
                ".inputs": inputs,
                ".outputs": outputs,
                **self.tables(layer, sheet),
                ".weight_zero": quant_of(layer.input(1)).zero_points[0],
                ".out_zero": quant_of(layer.output).zero_point,
                ".out_min": low,
                ".out_max": high,
                ".round_once": c.boolean(op.round_once),
            },
        )
        sheet.line(f"{self.name}(&{name}, {sheet.x()}, {sheet.y()});")

    def tables(self, layer: Layer, sheet: Sheet) -> dict[str, object]:
        """Members that point to constants: filters in fours, the last ones one by one."""
        filters = layer.input(1).value
        bias, outputs = folded_bias(layer, filters), filters.shape[0]
        factors = [per_channel(values, outputs) for values in multipliers(layer)]
        whole = outputs - outputs % 4
        parts = [
            filter_stream(filters[part], bias[part], (factors[0][part], factors[1][part]), together)
            for part, together in ((slice(whole), 4), (slice(whole, outputs), 1))
            if part.stop > (part.start or 0)
        ]
        return {".weights": f"(const int8_t *){sheet.table('filters', np.concatenate(parts))}"}


class DenseDsp(DenseInt8):
    """The same with DSP instructions, in pairs of int16."""

    name = "tinyml_dense_dsp_s8"
    sources = ("dense_dsp_s8.c",)
    cost = Cost(dsp=(1.45, 40), mve=(1.45, 40))
    constraints = (*DenseInt8.constraints, shrinking(multipliers))

    def runs_on(self, target: Target) -> bool:
        return target.dsp


class DenseHelium(DenseInt8):
    """Four filters meet a row at a time, sixteen elements of each."""

    name = "tinyml_dense_mve_s8"
    sources = ("dense_mve_s8.c",)
    cost = Cost(mve=(0.12, 25))
    constraints = (int8_tensors, constant_weights, symmetric_weights, helium.shrinking(multipliers))

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def tables(self, layer: Layer, sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        multiplier, shift = (per_channel(values, filters.shape[0]) for values in multipliers(layer))
        return {
            ".weights": sheet.table("weights", helium.in_fours(filters)),
            ".bias": sheet.table("bias", folded_bias(layer, filters)),
            ".multiplier": sheet.table("multiplier", multiplier),
            ".shift": sheet.table("shift", shift.astype(np.int8)),
        }


class DenseFloat(Kernel):
    """Float matrix-vector products in portable C."""

    name = "tinyml_dense_f32"
    library = Library.PORTABLE
    sources = ("dense_f32.c",)
    constraints = (float_tensors, constant_weights)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, Dense)
        outputs, inputs = layer.input(1).shape
        sheet.include("<math.h>")
        sheet.include("<tinyml/dense.h>")
        name = sheet.record(
            "struct tinyml_dense_f32",
            "params",
            {
                ".rows": layer.output.elements // outputs,
                ".inputs": inputs,
                ".outputs": outputs,
                ".weights": sheet.table("weights", layer.input(1).value),
                ".bias": sheet.table("bias", layer.input(2).value.reshape(-1))
                if layer.has_input(2)
                else "NULL",
                ".out_min": c.floating(op.clamp[0]),
                ".out_max": c.floating(op.clamp[1]),
            },
        )
        sheet.line(f"tinyml_dense_f32(&{name}, {sheet.x()}, {sheet.y()});")


register_kernels(
    Dense,
    *DENSE_KERNELS,
    DenseHelium(),
    DenseDsp(),
    DenseInt8(),
    DenseInt16(),
    DenseByteWeights(),
    DenseFloat(),
)
