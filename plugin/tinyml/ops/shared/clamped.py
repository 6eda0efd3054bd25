# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Clamped: the base of operators that limit their own output, so that an activation can be part of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Op
from tinyml.ops.shared.quant import NO_CLAMP, Clamp

C = TypeVar("C", bound="Clamped")


@dataclass(frozen=True, kw_only=True)
class Clamped(Op):
    """The output lies between the limits of ``clamp``, in real numbers also where it is quantised."""

    clamp: Clamp = NO_CLAMP

    @property
    def limits(self) -> tuple[float, float]:
        return self.clamp

    def limited(self: C, low: float, high: float) -> C:
        own_low, own_high = self.clamp
        return replace(self, clamp=(min(max(own_low, low), high), max(min(own_high, high), low)))
