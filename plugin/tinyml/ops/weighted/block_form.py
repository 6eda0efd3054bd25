# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Real weights that are small integers times a scale, one for each block of a row: finding and packing them.

The form is found in the numbers themselves, so that it does not matter which format or exporter a model came
from, and it is used only where it is exact.
"""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

SMALLEST = 16
"""Elements of a block; below that its scale would cost what fewer bits save."""

WORTHWHILE = 64
"""Elements of a matrix; below that it is not worth another kernel."""

USUAL = (256, 128, 64, 32, 16)
PARTS = 16
"""Into so many equal blocks a row is divided at most, if its blocks do not have a usual size."""

FIRST = 4
"""Blocks that are tried before all others: most matrices do not have the form, and most sizes are wrong."""

WORD = 8
"""Weights of four bits in a word."""


@dataclass(frozen=True, eq=False)
class BlockForm:
    """``rows = steps * scales``, where each row has a scale for every ``block`` elements."""

    steps: Array  # (rows, elements), integers
    scales: Array  # (rows, blocks)
    block: int

    @property
    def blocks(self) -> int:
        return int(self.scales.shape[1])

    def packed(self) -> tuple[Array, Array]:
        """Words with eight steps from 0 to 15 each, and for each block the step that means 0."""
        steps, zeros = self._shifted(8, 15)
        words = []
        for begin in range(0, steps.shape[1], self.block):
            part = steps[:, begin : begin + self.block]
            part = np.pad(part, ((0, 0), (0, -part.shape[1] % WORD))).reshape(len(part), -1, 2, 4)
            bytes_ = (part[:, :, 0] | part[:, :, 1] << 4).astype(np.uint32)
            words.append(sum(bytes_[:, :, i] << np.uint32(8 * i) for i in range(4)))
        return np.concatenate(words, axis=1).astype(np.uint32), zeros.astype(np.uint8)

    def bytes(self) -> tuple[Array, Array]:
        """Steps from -128 to 127, and for each block the step that means 0."""
        steps, zeros = self._shifted(128, 255)
        return (steps - 128).astype(np.int8), (zeros - 128).astype(np.int16)

    def _shifted(self, middle: int, largest: int) -> tuple[Array, Array]:
        """Steps from 0 to ``largest``, with ``middle`` for 0 in all blocks where that is possible."""
        starts = np.arange(0, self.steps.shape[1], self.block)
        low = np.minimum.reduceat(self.steps, starts, axis=1)
        high = np.maximum.reduceat(self.steps, starts, axis=1)
        usual = (low >= -middle) & (high <= largest - middle)
        zeros = np.where(usual, middle, np.clip(-low, 0, largest))
        return self.steps + _spread(zeros, self.block, self.steps.shape[1]), zeros


def _spread(values: Array, block: int, length: int) -> Array:
    return np.repeat(values, block, axis=1)[:, :length]


_found: dict[tuple[int, int], tuple[Array, BlockForm | None]] = {}


def block_form(rows: Array, bits: int) -> BlockForm | None:
    """The form of a matrix of float32 with steps of ``bits`` bits and the largest blocks that there are."""
    known = _found.get((id(rows), bits))
    if known is None or known[0] is not rows:
        for key in [key for key in _found if key[1] == bits]:
            del _found[key]  # the constraint and then the kernel look up the same weights
        known = _found[(id(rows), bits)] = (rows, _search(rows.reshape(rows.shape[0], -1), bits))
    return known[1]


def _search(rows: Array, bits: int) -> BlockForm | None:
    length = rows.shape[1]
    if rows.size < WORTHWHILE or length < SMALLEST or not np.isfinite(rows).all():
        return None
    filled = rows[:, :SMALLEST][np.any(rows[:, :SMALLEST] != 0, axis=1)][:FIRST]
    if not len(filled) or _steps(filled, bits) is None:  # no larger block has the form either
        return None
    sizes = {length // parts for parts in range(1, PARTS + 1) if length % parts == 0} | set(USUAL)
    for block in sorted((size for size in sizes if SMALLEST <= size <= length), reverse=True):
        form = _in_blocks(rows, bits, block)
        if form is not None:
            return form
    return None


def _in_blocks(rows: Array, bits: int, block: int) -> BlockForm | None:
    count, length = rows.shape
    padded = np.pad(rows, ((0, 0), (0, -length % block))).reshape(-1, block)
    filled = np.any(padded != 0, axis=1)
    if _steps(padded[filled][:FIRST], bits) is None:
        return None
    found = _steps(padded[filled], bits)
    if found is None:
        return None
    steps, scales = np.zeros(padded.shape, np.int64), np.ones(len(padded), np.float32)
    steps[filled], scales[filled] = found
    return BlockForm(steps.reshape(count, -1)[:, :length], scales.reshape(count, -1), block)


def _steps(blocks: Array, bits: int) -> tuple[Array, Array] | None:
    """Steps and scales of blocks that are not all zero; None if one of them has none."""
    tops = np.abs(blocks).max(axis=1)
    half, largest = 1 << (bits - 1), (1 << bits) - 1
    if not _whole(blocks[:1], tops[0] / np.arange(1, largest + 1, dtype=np.float32))[1].any():
        return None  # as for most weights: this is quicker than the loop below
    steps, scales = np.zeros(blocks.shape, np.int64), np.zeros(len(blocks), np.float32)
    open_ = np.arange(len(blocks))
    for steps_of_top in dict.fromkeys((half - 1, half, *range(1, largest + 1))):
        if not len(open_):
            break
        part, guess = blocks[open_], tops[open_] / np.float32(steps_of_top)
        guess = guess.astype(np.float32)
        whole, near = _whole(part, guess)
        span = np.maximum(whole.max(axis=1), 0) - np.minimum(whole.min(axis=1), 0)
        rest = np.flatnonzero(near & (span <= largest))
        solved: list[Array] = []
        for scale in (guess, np.nextafter(guess, np.float32(0)), np.nextafter(guess, np.float32(np.inf))):
            equal = whole[rest].astype(np.float32) * scale[rest, None] == part[rest]
            fits = rest[equal.all(axis=1)]
            steps[open_[fits]], scales[open_[fits]] = _signed(whole[fits].astype(np.int64), scale[fits], half)
            solved.append(fits)
            rest = np.setdiff1d(rest, fits)
        open_ = np.delete(open_, np.concatenate(solved))
    return None if len(open_) else (steps, scales)


def _whole(blocks: Array, scales: Array) -> tuple[Array, Array]:
    """Steps of each block with its scale, or of one block with all scales; which of them are almost whole."""
    with np.errstate(all="ignore"):
        quotients = blocks / scales[:, None]
        whole = np.rint(quotients)
        return whole, np.abs(quotients - whole).max(axis=1) <= 1e-3


def _signed(steps: Array, scales: Array, half: int) -> tuple[Array, Array]:
    """With the sign of the scale for which steps reach from -half to half - 1, if one does."""
    turned = (steps.max(axis=1, initial=0) == half) & (steps.min(axis=1, initial=0) > -half)
    sign = np.where(turned, -1, 1)
    return steps * sign[:, None], (scales * sign).astype(np.float32)
