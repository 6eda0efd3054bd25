# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The fast Fourier transform: how a length is taken apart, and the tables of ``runtime/signal/fft_f32.c``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

LARGEST_PRIME = 31
"""The largest length of a fast transform: the C keeps this many numbers on the stack."""


def radices(points: int) -> list[int] | None:
    """The radix of each stage, the first (of neighbouring points) first: fours, then primes.

    None where a prime factor is too large. The first stage multiplies nothing, so it has a large radix.
    """
    found = []
    for radix in (4, 2, *range(3, LARGEST_PRIME + 1, 2)):
        while points % radix == 0:
            found.append(radix)
            points //= radix
    return found if points == 1 else None


def places(stages: Sequence[int]) -> Array:
    """Where each input goes before the first stage."""
    order = np.zeros(1, np.int64)
    for radix in stages:
        order = (order[None, :] * radix + np.arange(radix)[:, None]).reshape(-1)
    return np.argsort(order).astype(np.uint16)


def twiddles(stages: Sequence[int], inverse: bool) -> Array:
    """The factors in the order in which stages use them; for every stage but the first."""
    pairs = []
    width = stages[0] if stages else 1
    for radix in stages[1:]:
        k, leg = np.arange(width)[:, None], np.arange(1, radix)[None, :]
        pairs.append(_circle((k * leg).reshape(-1) / (width * radix), inverse))
        width *= radix
    return np.concatenate(pairs) if pairs else np.zeros((1, 2), np.float32)


def separation(points: int) -> Array:
    """Factors for the spectrum of a real signal of 2 * points samples: half steps, from 1 on."""
    return _circle(np.arange(1, points // 2 + 1) / (2 * points), False)


def roots(stages: Sequence[int], inverse: bool) -> Array:
    """One turn for each radix that has no butterfly of its own, smallest first."""
    odd = [radix for radix in sorted(set(stages)) if radix > 5]
    turns = [_circle(np.arange(radix) / radix, inverse) for radix in odd]
    return np.concatenate(turns) if turns else np.zeros((1, 2), np.float32)


def _circle(turns: Array, inverse: bool) -> Array:
    angles = (2 if inverse else -2) * np.pi * turns
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)


@dataclass(frozen=True)
class FftTables:
    """A transform of ``points`` complex numbers; ``real``: of 2 * points real ones."""

    points: int
    real: bool
    inverse: bool = False

    @property
    def stages(self) -> list[int]:
        found = radices(self.points)
        assert found is not None, "checked before"
        return found

    def tables(self) -> Mapping[str, Array]:
        """By member of struct tinyml_fft_f32."""
        stages = self.stages
        return {
            "places": places(stages),
            "radices": np.array([*stages, 0], np.uint8),
            "twiddles": twiddles(stages, self.inverse),
            **({"roots": roots(stages, self.inverse)} if max(stages, default=1) > 5 else {}),
            **({"separation": separation(self.points)} if self.real and self.points > 1 else {}),
        }

    def numbers(self) -> Mapping[str, str]:
        return {"points": str(self.points), "sign": "1.0f" if self.inverse else "-1.0f"}
