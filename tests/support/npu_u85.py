# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Executes the command stream of an Ethos-U85 with 256 multiply-accumulates in numpy.

Most registers are those of U55 and U65. The others follow the header of Arm's driver
(``ethosu85_interface.h``), the order of the weights what Vela makes of known ones, and the second rounding
of scales what TensorFlow Lite computes. Supported: convolution, depthwise convolution, pools and element-wise
operators on int8 with any scales. Anything else raises ``NotExecuted``: tables, operators in a chain, sparse
weights and those for the fast decoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.support.npu_oracle import (
    ADD,
    AVERAGE_POOL,
    CONV,
    COPY,
    COPY_WAIT,
    DEPTHWISE,
    ELEMENTWISE,
    IRQ,
    KERNEL_WAIT,
    MAX_POOL,
    MAXIMUM,
    MINIMUM,
    MUL,
    POOL,
    SCALES,
    SUB,
    TIE_TWICE,
    TIE_UP,
    NotExecuted,
    Npu,
    Walk,
    Wide,
    scaled,
)

SUM_OF_WINDOW = 3
SCALAR = 8
OTHER_WEIGHTS = range(0x90, 0x98)  # of further decoders
IFM_BROADCAST, WEIGHT_FORMAT = 0x108, 0x12E
SETTINGS = 0x100  # the first; those without a register here do not change results
KNOWN = (IRQ, CONV, DEPTHWISE, POOL, ELEMENTWISE, COPY, COPY_WAIT, KERNEL_WAIT)
DOUBLE, NATURAL = 0, 1
WALK = Walk(multiple=5, snake=True, depth=64, inputs=16, lanes=16)


@dataclass
class NpuU85(Npu):
    """``roundings``: the mode and the bits of the first rounding, for each scale."""

    walk: Walk = WALK
    bias_bytes: int = 4
    roundings: dict[str, tuple[int, int]] = field(default_factory=dict)

    def _set_wide(self, code: int, parameter: int, value: int) -> None:
        if code in OTHER_WEIGHTS:
            raise NotExecuted("several streams of weights")
        if code in SCALES:
            self.roundings[SCALES[code]] = parameter >> 13, parameter >> 6 & 0x1F
        super()._set_wide(code, parameter, value)

    def _operate(self, code: int, parameter: int) -> None:
        r = self.registers
        if code in (IFM_BROADCAST, WEIGHT_FORMAT) and parameter:
            raise NotExecuted(f"setting {code} with {parameter}")
        if code >= SETTINGS:
            return
        if code not in KNOWN:
            raise NotExecuted(f"command {code}")
        if code == COPY and (r["DMA_FROM_REGION"] | r["DMA_TO_REGION"]) >> 8:
            raise NotExecuted("a copy in several dimensions, or into the NPU")
        if any(r.get(f"{which}_PRECISION", 0) >> 14 for which in ("IFM", "IFM2", "OFM")):
            raise NotExecuted("operators in a chain")
        if r.get("OFM_PRECISION", 0) >> 9:
            raise NotExecuted("an output that is turned")
        if r.get("ACTIVATION", 0) & 0x1F:
            raise NotExecuted("a table")
        super()._operate(code, parameter)

    def _pooled(self, mode: int) -> Wide:
        if mode == MAX_POOL:
            return super()._pooled(mode)
        if mode not in (AVERAGE_POOL, SUM_OF_WINDOW):
            raise NotExecuted(f"pool {mode}")
        windows = [x for _, _, x in self._windows(self._output[2], 0)]
        total = np.sum(windows, axis=0)
        if mode == AVERAGE_POOL:
            if any(self.registers[f"PAD_{side}"] for side in ("TOP", "LEFT", "RIGHT", "BOTTOM")):
                raise NotExecuted("an average of windows of different sizes")
            count = len(windows)
            total = np.sign(total) * ((np.abs(total) + count // 2) // count)
        return self._scaled(total)

    def _combined(self, mode: int) -> Wide:
        shape = self._output
        a, b = (self._operand(which, shape) for which in ("IFM", "IFM2"))
        if mode == MUL:
            return self._scaled(a * b)
        if mode in (ADD, SUB):
            return self._scaled(a + b if mode == ADD else a - b)
        if mode in (MINIMUM, MAXIMUM):
            return self._scaled(np.minimum(a, b) if mode == MINIMUM else np.maximum(a, b))
        raise NotExecuted(f"element-wise operator {mode}")

    def _operand(self, which: str, shape: tuple[int, int, int]) -> Wide:
        """An input of an element-wise operator, with the scale of its own that the U85 gives it."""
        bits = self.registers["BROADCAST"] if which == "IFM2" else 0
        if bits & SCALAR:
            raise NotExecuted("a scalar")
        extents = [1 if bits >> axis & 1 else extent for axis, extent in enumerate(shape)]
        scale = {"IFM": "OPA_SCALE", "IFM2": "OPB_SCALE"}[which]
        values = self._rounded(
            self._read(which, *extents), self.registers[scale], self.shifts[scale], self.roundings[scale]
        )
        return np.broadcast_to(values, shape)

    def _rescaled(self, values: Wide, factor: int, shift: int) -> Wide:
        return self._rounded(values, factor, shift, self.roundings["OFM_SCALE"])

    def _rounded(self, values: Wide, factor: int, shift: int, rounding: tuple[int, int]) -> Wide:
        mode, earlier = rounding
        if mode == NATURAL:
            return scaled(values, factor, shift, TIE_UP)
        if mode != DOUBLE:
            raise NotExecuted(f"rounding {mode}")
        return scaled(values << earlier, factor, shift + earlier, TIE_TWICE)
