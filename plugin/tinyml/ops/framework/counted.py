# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors with fewer results than room: which axis it is, and the tensor that has their number.

All shapes are static. An operator that decides at run time how many results there are gives as many as its
bound, and their number. What follows computes all of them, also those after the last, whose values mean
nothing; that is right as long as each result depends on its own operands alone (``Op.carried_axis``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer, Tensor


@dataclass(frozen=True)
class Counted:
    """Along ``axis``, only the first elements are results; the tensor called ``count`` has their number."""

    axis: int
    count: str


ADVICE = "keep the outputs before it with --outputs, and compute the rest in the application"


def carried(layer: Layer, counted: Mapping[str, Counted]) -> Sequence[Counted | None]:
    """What the outputs of a layer are, if some of its inputs have fewer results than room."""
    found: list[Counted | None] = [None] * len(layer.outputs)
    for index, tensor in enumerate(layer.inputs):
        known = counted.get(tensor.name) if tensor is not None else None
        if known is None:
            continue
        axes = layer.op.carried_axis(layer, index, known.axis)
        if axes is None:
            raise _mixed(layer, tensor)
        for position, axis in enumerate(axes):
            if layer.outputs[position].shape[axis] != layer.input(index).shape[known.axis]:
                raise _mixed(layer, tensor)  # a single element was repeated
            own = Counted(axis, known.count)
            if found[position] not in (None, own):
                raise UnsupportedError(
                    f"{layer.op.kind} {layer.name!r} joins results of two operators, whose numbers are known "
                    "at run time alone",
                    ADVICE,
                )
            found[position] = own
    return found


def _mixed(layer: Layer, tensor: Tensor | None) -> UnsupportedError:
    name = "" if tensor is None else tensor.name
    return UnsupportedError(
        f"{layer.op.kind} {layer.name!r} mixes the elements of {name!r}, whose number is known at run time "
        "alone",
        ADVICE,
    )
