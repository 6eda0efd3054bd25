# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which axes of a reshape belong together."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.ir import Shape

Group = tuple[list[int], list[int]]
"""Axes before and axes after that hold the same elements: a merge, a split, or both."""


def groups(old: Sequence[int], new: Sequence[int]) -> list[Group]:
    """The smallest groups of neighbouring axes with equal products. Axes of extent 1 are in none."""
    left = [i for i, extent in enumerate(old) if extent != 1]
    right = [i for i, extent in enumerate(new) if extent != 1]
    found: list[Group] = []
    while left and right:
        before, after = [left.pop(0)], [right.pop(0)]
        a, b = old[before[0]], new[after[0]]
        while a != b:
            if a < b:
                before.append(left.pop(0))
                a *= old[before[-1]]
            else:
                after.append(right.pop(0))
                b *= new[after[-1]]
        found.append((before, after))
    return found


def carried(x: Shape, perm: Sequence[int], new: Shape) -> tuple[Shape, tuple[int, ...]] | None:
    """Shape and permutation such that transpose(reshape(x, shape), permutation) is
    reshape(transpose(x, perm), new); None where the reshape joins axes that are not neighbours in x."""
    if 0 in x:
        return None
    turned = [x[p] for p in perm]
    places = {axis: i for i, axis in enumerate(a for a in range(len(x)) if x[a] != 1)}
    ordered: list[tuple[int, list[int]]] = []
    for before, after in groups(turned, new):
        spots = [places[perm[axis]] for axis in before]
        if spots != list(range(spots[0], spots[0] + len(spots))):
            return None
        ordered.append((spots[0], after))
    ordered.sort()
    ones = [axis for axis, extent in enumerate(new) if extent == 1]
    axes = [*ones, *(axis for _, after in ordered for axis in after)]
    return tuple(new[axis] for axis in axes), tuple(axes.index(axis) for axis in range(len(new)))


def unit_axes_only(old: Sequence[int], new: Sequence[int]) -> dict[int, int] | None:
    """New axis -> old axis, where a reshape only adds or drops axes of extent 1; else None."""
    left = [i for i, extent in enumerate(old) if extent != 1]
    right = [i for i, extent in enumerate(new) if extent != 1]
    if [old[i] for i in left] != [new[i] for i in right]:
        return None
    return dict(zip(right, left, strict=True))
