# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loop: a body applied again and again. The number of steps is known, so the loop is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers.unrolling import goes_on
from tinyml.ir import Tensor
from tinyml.ops.concat import concat
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape

Body = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def unroll(inputs: Sequence[Tensor | None], outputs: int, build: Builder, body: Body) -> list[Tensor]:
    """The final values of what the loop carries, then the joined outputs of all steps."""
    most, condition, *given = inputs
    carried = [tensor for tensor in given if tensor is not None]
    if len(carried) != len(given):
        raise ModelError("a Loop lacks the initial value of a carried variable")
    if condition is None:
        condition = build.constant(np.asarray(True))
    collected: list[Sequence[Tensor]] = []
    while goes_on(condition, len(collected)) and goes_on(_below(build, len(collected), most), len(collected)):
        number = build.constant(np.asarray(len(collected), np.int64))
        condition, *results = body([number, condition, *carried])
        if len(results) != outputs:
            raise ModelError(f"a Loop has {outputs} outputs, and its body computes {len(results)}")
        carried, rows = results[: len(carried)], results[len(carried) :]
        collected.append(rows)
    build.longest_loop = max(build.longest_loop, len(collected))
    if outputs < len(carried):
        raise ModelError(f"a Loop carries {len(carried)} values and has {outputs} outputs")
    if not collected and outputs > len(carried):
        raise UnsupportedError("a Loop with zero steps that collects outputs is not supported")
    return [*carried, *(_joined(build, rows) for rows in zip(*collected, strict=True))]


def _below(build: Builder, step: int, most: Tensor | None) -> Tensor | None:
    """Whether ``step`` is below the largest number of steps, as a constant if that one is."""
    if most is None:
        return build.constant(np.asarray(True))
    return None if most.data is None else build.constant(np.asarray(step < most.data))


def _joined(build: Builder, rows: Sequence[Tensor]) -> Tensor:
    return concat(build, [build.add1(Reshape((1, *row.shape)), [row]) for row in rows], 0)
