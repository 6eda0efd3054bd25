# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops with a condition (TFLite's WHILE, ONNX's Loop), unrolled: the compiler computes the condition itself.

Keras converts recurrent layers to such loops. Their counters begin at constants, so whether another step
follows is a constant too.
"""

from __future__ import annotations

from tinyml.base import limits
from tinyml.base.errors import UnsupportedError
from tinyml.ir import Tensor

MOST_STEPS = 1024
"""Every step is read; ``roll_recurrent`` refuses long loops that become no layer."""

MOST_COPIES = 256
"""Of the body of a loop that becomes no layer."""

SHORTER = "Keras: unroll=True is a loop too; give the layer shorter sequences, or keep its state between runs"


def goes_on(condition: Tensor | None, steps: int) -> bool:
    """Whether a loop that has done ``steps`` does another one."""
    limits.check_time()
    if condition is None or condition.data is None or condition.data.size != 1:
        raise UnsupportedError(
            "a loop whose number of steps depends on computed values is not supported",
            "convert the model with fixed shapes; or --bound NAME=100 states how many steps it has at most",
        )
    if not condition.data.reshape(()):
        return False
    if steps >= MOST_STEPS:
        raise UnsupportedError(f"a loop of more than {MOST_STEPS:,} steps is not supported", SHORTER)
    return True
