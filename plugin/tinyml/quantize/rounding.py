# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights rounded to four bits so that the outputs of their layer change least on the calibration data.

Rounding each weight to the nearest step makes an error that the next weights can make up for, since the
inputs of a layer are correlated. With the inputs' second moments H, the error of a row is (w - q)ᵀ H (w - q).
Weights are rounded one after the other; each error is spread over those that are still free, as far as H
says that they can take it over. Then single steps up or down are taken as long as one lowers the error.
"""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

LOW, HIGH = -8, 7
"""Of a signed integer of four bits."""

SHARES = (1.0, 0.92, 0.84, 0.76, 0.68, 0.6, 0.5)
"""Scales that are tried, as shares of that which reaches the largest weight."""

DAMPING = 0.01
"""Added to the diagonal of H, as a share of its mean: inputs that were never seen must not decide."""

SWEEPS = 3
"""Rounds of single steps."""


@dataclass(frozen=True)
class Rounded:
    """Integers (groups, rows, columns), and one scale for each channel (groups, channels)."""

    values: Array
    scales: Array
    error: float  # of the outputs, in energy per position


def damped(moments: Array) -> Array:
    """The second moments of the inputs, with something for inputs that were never seen."""
    found = moments.copy()
    diagonal = np.einsum("gii->gi", found)  # a view
    level = diagonal.mean(axis=1, keepdims=True)
    diagonal += DAMPING * np.where(level > 0, level, 1.0)
    return found


def four_bits(rows: Array, hessian: Array, together: int = 1) -> Rounded:
    """Round ``rows``; ``together``: how many consecutive rows share a channel, and so a scale."""
    groups, count = rows.shape[:2]
    channels = count // together
    largest = np.abs(rows).reshape(groups, channels, -1).max(axis=2)
    full = np.where(largest > 0, largest / HIGH, 1.0)
    order, spread = _order_and_spread(hessian)
    best: tuple[Array, Array, Array] | None = None
    for share in SHARES:
        scales = full * share
        values = _in_turn(rows, np.repeat(scales, together, axis=1), order, spread)
        scales = _fitted(rows, values, hessian, scales, together)
        values = _single_steps(rows, values, np.repeat(scales, together, axis=1), hessian)
        scales = _fitted(rows, values, hessian, scales, together).astype(np.float32).astype(np.float64)
        errors = _errors(rows, values, np.repeat(scales, together, axis=1), hessian)
        errors = errors.reshape(groups, channels, together).sum(axis=2)
        if best is None:
            best = values, scales, errors
            continue
        better = errors < best[2]
        wide = np.repeat(better, together, axis=1)[:, :, np.newaxis]
        best = (
            np.where(wide, values, best[0]),
            np.where(better, scales, best[1]),
            np.where(better, errors, best[2]),
        )
    assert best is not None
    return Rounded(best[0].astype(np.int8), best[1].astype(np.float32), float(best[2].sum()))


def nearest(rows: Array, hessian: Array, together: int = 1) -> Rounded:
    """Every weight to the nearest step, for comparison."""
    groups, count, _ = rows.shape
    largest = np.abs(rows).reshape(groups, count // together, -1).max(axis=2)
    scales = np.where(largest > 0, largest / HIGH, 1.0)
    wide = np.repeat(scales, together, axis=1)
    values = np.clip(np.rint(rows / wide[:, :, np.newaxis]), LOW, HIGH)
    error = float(_errors(rows, values, wide, hessian).sum())
    return Rounded(values.astype(np.int8), scales.astype(np.float32), error)


def _order_and_spread(hessian: Array) -> tuple[Array, Array]:
    """Columns in the order of rounding, the largest inputs first, and how an error spreads over the rest."""
    order = np.argsort(-np.einsum("gii->gi", hessian), axis=1, kind="stable")
    rows, columns = order[:, :, np.newaxis], order[:, np.newaxis, :]
    sorted_moments = hessian[np.arange(len(hessian))[:, np.newaxis, np.newaxis], rows, columns]
    lower = np.linalg.cholesky(np.linalg.inv(sorted_moments))
    return order, np.swapaxes(lower, 1, 2)


def _in_turn(rows: Array, scales: Array, order: Array, spread: Array) -> Array:
    """Round column by column; each error changes the columns that are still to come."""
    places = np.broadcast_to(order[:, np.newaxis, :], rows.shape)
    left = np.take_along_axis(rows, places, axis=2)
    values = np.empty_like(left)
    for column in range(rows.shape[2]):
        values[:, :, column] = np.clip(np.rint(left[:, :, column] / scales), LOW, HIGH)
        error = left[:, :, column] - values[:, :, column] * scales
        error /= spread[:, column, column][:, np.newaxis]
        rest = spread[:, column, column + 1 :]
        left[:, :, column + 1 :] -= error[:, :, np.newaxis] * rest[:, np.newaxis, :]
    result = np.empty_like(values)
    np.put_along_axis(result, places, values, axis=2)
    return result


def _single_steps(rows: Array, values: Array, scales: Array, hessian: Array) -> Array:
    """Move single weights by a step wherever that lowers the error."""
    values = values.copy()
    slopes = np.matmul(rows - values * scales[:, :, np.newaxis], hessian)
    diagonal = np.einsum("gii->gi", hessian)
    for _ in range(SWEEPS):
        moved = False
        for column in range(rows.shape[2]):
            step = slopes[:, :, column] / (diagonal[:, column, np.newaxis] * scales)
            now = values[:, :, column]
            change = np.clip(now + np.rint(step), LOW, HIGH) - now
            if not change.any():
                continue
            moved = True
            values[:, :, column] += change
            slopes -= (change * scales)[:, :, np.newaxis] * hessian[:, column, :][:, np.newaxis, :]
        if not moved:
            break
    return values


def _fitted(rows: Array, values: Array, hessian: Array, scales: Array, together: int) -> Array:
    """The scales with which these integers come closest."""
    weighted = np.matmul(values, hessian)
    shape = (rows.shape[0], -1, together)
    above = (weighted * rows).sum(axis=2).reshape(shape).sum(axis=2)
    below = (weighted * values).sum(axis=2).reshape(shape).sum(axis=2)
    fitted = above / np.where(below > 0, below, 1.0)
    return np.where((below > 0) & (fitted > 0), fitted, scales)


def _errors(rows: Array, values: Array, scales: Array, hessian: Array) -> Array:
    apart = rows - values * scales[:, :, np.newaxis]
    found: Array = (np.matmul(apart, hessian) * apart).sum(axis=2)
    return found
