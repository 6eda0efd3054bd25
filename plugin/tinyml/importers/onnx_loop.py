# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loop: a body applied again and again. The number of steps is known; short loops are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.importers.attempt import Attempt
from tinyml.importers.rolling import Outline, Turn, passed_on, rolled
from tinyml.importers.unrolling import goes_on
from tinyml.ir import Tensor
from tinyml.ops.concat import concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape

Body = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def read(
    inputs: Sequence[Tensor | None],
    outputs: int,
    build: Builder,
    body: Body,
    fixed: Sequence[int],
    attempt: Attempt,
) -> list[Tensor]:
    """The final values of what the loop carries, then the joined outputs of all steps.

    ``fixed``: the places of carried values that the body passes on unchanged.
    """
    most, condition, *given = inputs
    begins = condition is None or condition.data is None or bool(condition.data.reshape(-1).all())
    carried = [tensor for tensor in given if tensor is not None]
    if begins and len(carried) == len(given):
        steps, limit = None, None  # the largest number of steps, or where it is computed
        if most is not None and most.data is not None:
            steps = int(most.data.reshape(()))
        else:
            limit = most
        number = build.constant(np.asarray(0, np.int64))
        outline = Outline(
            [number, *(x for i, x in enumerate(carried) if i not in fixed)],
            (),
            lambda own, _: _turn(own, carried, outputs, build, body, fixed, limit),
            lambda steps: unroll(inputs, outputs, build, body, steps),
            steps,
            begins=lambda: _and_below(build, condition, number, limit),
            may_not_begin=condition is not None and condition.data is None,
            private=1,
        )
        found = rolled(build, attempt, outline)
        if found is not None:
            rest = len(carried) - len(fixed)
            return [*passed_on(fixed, carried, found[:rest]), *found[rest:]]
    attempt.undo()
    results = unroll(inputs, outputs, build, body)
    if len(results) < outputs:  # there is no step, and so no row: a turn on trial tells what rows are
        number, go = (build.constant(np.asarray(value)) for value in (np.int64(0), True))
        computed = body([number, go, *carried])[1:]
        attempt.undo()
        if len(computed) != outputs:
            raise ModelError(f"a Loop has {outputs} outputs, and its body computes {len(computed)}")
        rows = [row.type for row in computed[len(results) :]]
        results += [
            build.constant(np.zeros((0, *row.shape), row.dtype.numpy), quant=row.quant) for row in rows
        ]
    return results


def _turn(
    own: Sequence[Tensor],
    carried: Sequence[Tensor],
    outputs: int,
    build: Builder,
    body: Body,
    fixed: Sequence[int],
    limit: Tensor | None,
) -> Turn:
    """One turn with placeholders for the number of the step and what changes."""
    number, *changing = own
    one = build.constant(np.asarray(1, np.int64))
    following = build.add1(Binary(function="add"), [number, one])
    given = passed_on(fixed, carried, changing)
    condition, *results = body([number, build.constant(np.asarray(True)), *given])
    if len(results) != outputs:
        raise ModelError(f"a Loop has {outputs} outputs, and its body computes {len(results)}")
    kept = [x for i, x in enumerate(results[: len(carried)]) if i not in fixed]
    again = _and_below(build, condition, following, limit)
    return Turn(again, [following, *kept], results[len(carried) :])


def _and_below(
    build: Builder, condition: Tensor | None, number: Tensor, limit: Tensor | None
) -> Tensor | None:
    """Whether a condition holds and the number of a step is below a limit; None: there is neither."""
    if limit is None:
        return condition
    below = build.add1(Binary(function="less"), [number, limit])
    if condition is None or (condition.data is not None and condition.data.reshape(-1).all()):
        return below
    return build.add1(Binary(function="and"), [condition, below])


def unroll(
    inputs: Sequence[Tensor | None], outputs: int, build: Builder, body: Body, at_most: int | None = None
) -> list[Tensor]:
    """All steps, or the first ones: the values that are carried, and the rows if there is a step."""
    most, condition, *given = inputs
    carried = [tensor for tensor in given if tensor is not None]
    if len(carried) != len(given):
        raise ModelError("a Loop lacks the initial value of a carried variable")
    if condition is None:
        condition = build.constant(np.asarray(True))
    collected: list[Sequence[Tensor]] = []
    while (
        len(collected) != at_most
        and goes_on(condition, len(collected))
        and goes_on(_below(build, len(collected), most), len(collected))
    ):
        number = build.constant(np.asarray(len(collected), np.int64))
        condition, *results = body([number, condition, *carried])
        if len(results) != outputs:
            raise ModelError(f"a Loop has {outputs} outputs, and its body computes {len(results)}")
        carried, rows = results[: len(carried)], results[len(carried) :]
        collected.append(rows)
    build.longest_loop = max(build.longest_loop, len(collected))
    if outputs < len(carried):
        raise ModelError(f"a Loop carries {len(carried)} values and has {outputs} outputs")
    return [*carried, *(_joined(build, rows) for rows in zip(*collected, strict=True))]


def _below(build: Builder, step: int, most: Tensor | None) -> Tensor | None:
    """Whether ``step`` is below the largest number of steps, as a constant if that one is."""
    if most is None:
        return build.constant(np.asarray(True))
    return None if most.data is None else build.constant(np.asarray(step < most.data))


def _joined(build: Builder, rows: Sequence[Tensor]) -> Tensor:
    return concat(build, [build.add1(Reshape((1, *row.shape)), [row]) for row in rows], 0)
