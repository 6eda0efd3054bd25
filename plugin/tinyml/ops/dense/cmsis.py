# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers by CMSIS-NN."""

from __future__ import annotations

from typing import ClassVar

from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted import cmsis_nn as nn
from tinyml.ops.weighted.nibbles import int4_weights, neighbours_in_bytes
from tinyml.ops.weighted.records import constant_weights, folded_bias, int8_tensors, symmetric_weights
from tinyml.ops.weighted.weighted import Weighted

FULLY_CONNECTED = "Source/FullyConnectedFunctions"


def per_tensor_weights(layer: Layer) -> bool:
    """Weights have one scale."""
    return not quant_of(layer.input(1)).per_channel


class DenseKernel(nn.RoundingKernel[Weighted]):
    """Shared by the two kernels below."""

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        outputs, inputs = layer.input(1).shape
        rows = layer.output.elements // outputs
        sheet.include(nn.header(layer))
        members = {**nn.offsets(layer), ".filter_offset": 0, **nn.activation(layer.op.clamp, layer)}
        params = sheet.record("cmsis_nn_fc_params", "params", members)
        arguments = [
            self._context(layer, sheet),
            f"&{params}",
            f"&{self._quant(layer, sheet)}",
            f"&{nn.dims(sheet, 'in_dims', rows, 1, 1, inputs)}",
            sheet.x(),
            f"&{nn.dims(sheet, 'filter_dims', inputs, 1, 1, outputs)}",
            sheet.table("weights", self._weights(layer)),
            f"&{nn.dims(sheet, 'bias_dims', 1, 1, 1, outputs)}",
            nn.bias_table(layer, sheet),
            f"&{nn.dims(sheet, 'out_dims', rows, 1, 1, outputs)}",
            sheet.y(),
        ]
        sheet.line(f"(void){self.name}({', '.join(arguments)});")

    def _weights(self, layer: Layer[Weighted]) -> Array:
        return layer.input(1).value

    def _quant(self, layer: Layer[Weighted], sheet: Sheet) -> str:
        return nn.channel_quant(layer, sheet)

    def _context(self, layer: Layer[Weighted], sheet: Sheet) -> str:
        """With Helium the kernel starts from bias + input offset * sum of weights: known now, so in flash."""
        if not sheet.target.mve:
            return nn.context(sheet, 0)
        table = sheet.table("sums", folded_bias(layer, layer.input(1).value))
        sheet.line(f"const cmsis_nn_context context = {{(void *){table}, sizeof({table})}};")
        return "&context"


class DenseInt8Tensor(DenseKernel):
    """One scale for all weights."""

    name = "arm_fully_connected_s8"
    sources = (f"{FULLY_CONNECTED}/arm_fully_connected_s8.c", f"{nn.SUPPORT}/arm_nn_vec_mat_mult_t_s8.c")
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        nn.moderate_outputs,
        per_tensor_weights,
    )

    def _quant(self, layer: Layer[Weighted], sheet: Sheet) -> str:
        multiplier, shift = layer.op.multipliers(layer)
        return sheet.record(
            "cmsis_nn_per_tensor_quant_params",
            "quant",
            {".multiplier": int(multiplier[0]), ".shift": int(shift[0])},
        )


class DenseInt8Channel(DenseKernel):
    """One scale for each output."""

    name = "arm_fully_connected_per_channel_s8"
    sources = (
        f"{FULLY_CONNECTED}/arm_fully_connected_per_channel_s8.c",
        f"{nn.SUPPORT}/arm_nn_vec_mat_mult_t_per_ch_s8.c",
    )
    constraints = (int8_tensors, constant_weights, symmetric_weights, nn.moderate_outputs)


class DenseFourBits(DenseInt8Tensor):
    """Weights of four bits with one scale."""

    name = "arm_fully_connected_s4"
    sources = (f"{FULLY_CONNECTED}/arm_fully_connected_s4.c", f"{nn.SUPPORT}/arm_nn_vec_mat_mult_t_s4.c")
    constraints = (*DenseInt8Tensor.constraints, int4_weights)
    weight_bits = 4

    def _weights(self, layer: Layer[Weighted]) -> Array:
        return neighbours_in_bytes(layer.input(1).value)

    def _context(self, layer: Layer[Weighted], sheet: Sheet) -> str:
        return nn.context(sheet, 0)


FOUR_BIT_KERNELS = (DenseFourBits(),)
DENSE_KERNELS = (DenseInt8Tensor(), DenseInt8Channel())
