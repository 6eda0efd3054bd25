# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A recipe: a few numbers from which a random model is made, so that a failure is one line long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyml.ir import Array

ONNX_KINDS = (
    "float",
    "qdq_s8",
    "qdq_u8",
    "qdq_s16",
    "qat_s8",
    "qat_u8",
    "qop_s8",
    "qop_u8",
    "float_w4",
    "qdq_w4",
)
TFLITE_KINDS = ("tflite_float", "tflite_s8", "tflite_u8", "tflite_s16")
TFLITE_OPS = "tflite_ops"
"""Single operators with all their options."""
LOOP_KINDS = ("loop", "loop_qdq")
"""A Loop or a Scan with a random body, of floats or quantised."""
QUANTISED_LOOP = "quantised_loop"
"""A loop of floats that `tinyml quantize` made int8."""
UNROLLED = "unrolled"
"""Steps of recurrent layers, and of what is nearly one."""
KINDS = (*ONNX_KINDS, *TFLITE_KINDS, TFLITE_OPS, *LOOP_KINDS, QUANTISED_LOOP, UNROLLED)
NNSMITH = "nnsmith"
"""A kind that is not among KINDS, because its generator is not installed with the tests."""


@dataclass(frozen=True)
class Recipe:
    """``steps`` are seeds, one for each operator; a step chooses its operands among the tensors before it."""

    kind: str
    channels: int
    height: int
    width: int
    steps: tuple[int, ...]

    def smaller(self) -> Iterator[Recipe]:
        """Recipes that are simpler by one change: without a step, or with a smaller input."""
        for index in range(len(self.steps)):
            if len(self.steps) > 1:
                yield replace(self, steps=(*self.steps[:index], *self.steps[index + 1 :]))
        for name in ("channels", "height", "width"):
            extent = getattr(self, name)
            for less in dict.fromkeys((1, extent // 2, extent - 1)):
                if 0 < less < extent:
                    yield replace(self, **{name: less})


@dataclass(frozen=True)
class Model:
    """A model file and consecutive inputs for it, in the order of its inputs."""

    recipe: Recipe
    content: bytes
    samples: Sequence[Sequence[Array]]

    @property
    def is_tflite(self) -> bool:
        return self.recipe.kind in (*TFLITE_KINDS, TFLITE_OPS)


def recipe(number: int, seed: int = 0, kinds: Sequence[str] = KINDS) -> Recipe:
    """Recipe ``number`` of a series; kinds take turns."""
    rng = np.random.default_rng([seed, number])
    count = int(rng.integers(1, 9))
    channels = int(rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17]))
    return Recipe(
        kinds[number % len(kinds)],
        channels,
        int(rng.integers(1, 10)),
        int(rng.integers(1, 10)),
        tuple(int(step) for step in rng.integers(0, 1 << 30, count)),
    )
