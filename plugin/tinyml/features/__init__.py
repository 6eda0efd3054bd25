# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Signal front ends: what turns samples into the features that a model was trained on.

    rows = tinyml.features.compute(samples, kind="micro", step_ms=10)

gives a training script the numbers that the device computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyml.ir import Array


def compute(samples: Array, kind: str, **settings: Any) -> Array:
    """Rows of features of a recording, (frames,) or (frames, axes). Settings: the keys of ``frontend:``."""
    from tinyml.features.settings import from_mapping

    return from_mapping({"kind": kind, **settings}, "features").compute(samples)
