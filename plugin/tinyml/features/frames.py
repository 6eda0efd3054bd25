# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings as overlapping frames."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tinyml.ir import Array


class Framed(Protocol):
    @property
    def window(self) -> int: ...

    @property
    def step(self) -> int: ...


def frames_of(samples: Array, settings: Framed) -> Array:
    """(frames, window, …) of samples (count, …); what is left over at the end makes no frame."""
    count = max((len(samples) - settings.window) // settings.step + 1, 0)
    places = np.arange(count)[:, None] * settings.step + np.arange(settings.window)
    return samples[places]
