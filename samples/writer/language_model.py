# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A small decoder in numpy: forward and backward, with weights as four bits and as floats.

Two layers, each of attention (six heads of queries, two of keys and values, rotary embeddings) and of a dense
pair; RMS normalisation before both; the embedding is the output's matrix as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Weights = dict[str, Array]

WIDTH, HEADS, GROUPS, SIZE, HIDDEN, LAYERS = 96, 6, 2, 16, 384, 2
LENGTH = 128  # characters that the model looks back on
BLOCK = 32  # weights that share a scale
EPSILON = 1e-5
BASE = 10000.0  # of the rotary embeddings
MATRICES = {
    "query": (HEADS * SIZE, WIDTH),
    "key": (GROUPS * SIZE, WIDTH),
    "value": (GROUPS * SIZE, WIDTH),
    "out": (WIDTH, HEADS * SIZE),
    "up": (HIDDEN, WIDTH),
    "down": (WIDTH, HIDDEN),
}


def first_weights(characters: int, random: np.random.Generator) -> Weights:
    """(outputs, inputs) for every matrix, and the factors of the normalisations."""
    weights = {"embedding": random.normal(0.0, 0.05, (characters, WIDTH))}
    for layer in range(LAYERS):
        for name, shape in MATRICES.items():
            spread = 1.0 / np.sqrt(shape[1]) / (np.sqrt(2 * LAYERS) if name in ("out", "down") else 1.0)
            weights[f"{layer}.{name}"] = random.normal(0.0, spread, shape)
        weights[f"{layer}.before_attention"] = np.ones(WIDTH)
        weights[f"{layer}.before_dense"] = np.ones(WIDTH)
    weights["last"] = np.ones(WIDTH)
    return {name: value.astype(np.float32) for name, value in weights.items()}


def four_bits(matrix: Array) -> tuple[Array, Array]:
    """Integers from -8 to 7, and a scale for each block of a row."""
    blocks = matrix.reshape(len(matrix), -1, BLOCK)
    scales = np.maximum(np.abs(blocks).max(axis=2), 1e-6).astype(np.float32) / np.float32(7)
    return np.clip(np.rint(blocks / scales[:, :, None]), -8, 7).astype(np.int8), scales


def rounded(weights: Weights) -> Weights:
    """The weights that four bits stand for."""
    result = {}
    for name, value in weights.items():
        if value.ndim == 2:
            integers, scales = four_bits(value)
            result[name] = (integers * scales[:, :, None]).reshape(value.shape)
        else:
            result[name] = value
    return result


def angles(count: int) -> tuple[Array, Array]:
    """Cosines and sines of the rotary embeddings: (count, SIZE / 2)."""
    turns = np.arange(count)[:, None] * BASE ** (-np.arange(0, SIZE, 2) / SIZE)[None, :]
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


COSINES, SINES = angles(LENGTH)


def _turn(x: Array, back: bool = False) -> Array:
    """Rotary embeddings of (samples, heads, positions, SIZE); ``back`` undoes them."""
    half = SIZE // 2
    cosines, sines = COSINES[: x.shape[2]], SINES[: x.shape[2]]
    if back:
        sines = -sines
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=-1)


def _normalise(x: Array, factors: Array) -> tuple[Array, tuple[Array, Array]]:
    inverse = 1.0 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(EPSILON))
    unit = x * inverse
    return unit * factors, (unit, inverse)


def _normalise_back(grad: Array, kept: tuple[Array, Array], factors: Array) -> tuple[Array, Array]:
    unit, inverse = kept
    inner = grad * factors
    x = inverse * (inner - unit * np.mean(inner * unit, axis=-1, keepdims=True))
    return x, (grad * unit).reshape(-1, unit.shape[-1]).sum(axis=0)


def _heads(x: Array, count: int) -> Array:
    return x.reshape(*x.shape[:2], count, SIZE).transpose(0, 2, 1, 3)


def _joined(x: Array) -> Array:
    samples, heads, positions, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(samples, positions, heads * size)


def _attention(x: Array, w: Weights, at: str) -> tuple[Array, tuple[Array, ...]]:
    q = _turn(_heads(x @ w[at + "query"].T, HEADS))
    k = _turn(_heads(x @ w[at + "key"].T, GROUPS))
    v = _heads(x @ w[at + "value"].T, GROUPS)
    many = HEADS // GROUPS
    every_k, every_v = np.repeat(k, many, axis=1), np.repeat(v, many, axis=1)
    scores = q @ every_k.swapaxes(2, 3) * np.float32(SIZE**-0.5)
    scores += np.triu(np.full(scores.shape[2:], -1e9, np.float32), 1)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    y = _joined(scores @ every_v)
    return y @ w[at + "out"].T, (q, every_k, every_v, scores, y)


def _attention_back(
    grad: Array, x: Array, kept: tuple[Array, ...], w: Weights, at: str
) -> tuple[Array, Weights]:
    q, k, v, p, y = kept
    gradients = {at + "out": _outer(grad, y)}
    inner = _heads(grad @ w[at + "out"], HEADS)
    to_v = p.swapaxes(2, 3) @ inner
    to_p = inner @ v.swapaxes(2, 3)
    to_scores = p * (to_p - np.sum(to_p * p, axis=-1, keepdims=True)) * np.float32(SIZE**-0.5)
    to_q, to_k = _turn(to_scores @ k, back=True), to_scores.swapaxes(2, 3) @ q
    samples, _, positions, _ = to_k.shape
    grouped = (samples, GROUPS, HEADS // GROUPS, positions, SIZE)
    to_k, to_v = _turn(to_k.reshape(grouped).sum(axis=2), back=True), to_v.reshape(grouped).sum(axis=2)
    to_x = np.zeros_like(x)
    for name, part in (("query", to_q), ("key", to_k), ("value", to_v)):
        flat = _joined(part)
        gradients[at + name] = _outer(flat, x)
        to_x += flat @ w[at + name]
    return to_x, gradients


def _outer(grad: Array, x: Array) -> Array:
    return grad.reshape(-1, grad.shape[-1]).T @ x.reshape(-1, x.shape[-1])


def loss(w: Weights, tokens: Array, targets: Array, learning: bool = True) -> tuple[float, Weights]:
    """The mean of -log p of the targets, (samples, positions), and its gradients."""
    x = w["embedding"][tokens]
    kept = []
    for layer in range(LAYERS):
        at = f"{layer}."
        a, norm_a = _normalise(x, w[at + "before_attention"])
        y, attention = _attention(a, w, at)
        x = x + y
        b, norm_b = _normalise(x, w[at + "before_dense"])
        hidden = np.maximum(b @ w[at + "up"].T, 0)
        x = x + hidden @ w[at + "down"].T
        kept.append((a, norm_a, attention, b, norm_b, hidden))
    last, norm = _normalise(x, w["last"])
    logits = last @ w["embedding"].T
    logits -= logits.max(axis=-1, keepdims=True)
    p = np.exp(logits)
    p /= p.sum(axis=-1, keepdims=True)
    rows = np.arange(targets.size)
    found = p.reshape(targets.size, -1)[rows, targets.reshape(-1)]
    value = float(-np.mean(np.log(found + 1e-9)))
    if not learning:
        return value, {}
    p.reshape(targets.size, -1)[rows, targets.reshape(-1)] -= 1
    p /= targets.size
    gradients = {"embedding": _outer(p, last)}
    grad, gradients["last"] = _normalise_back(p @ w["embedding"], norm, w["last"])
    for layer in reversed(range(LAYERS)):
        at = f"{layer}."
        a, norm_a, attention, b, norm_b, hidden = kept[layer]
        gradients[at + "down"] = _outer(grad, hidden)
        inner = grad @ w[at + "down"] * (hidden > 0)
        gradients[at + "up"] = _outer(inner, b)
        more, gradients[at + "before_dense"] = _normalise_back(
            inner @ w[at + "up"], norm_b, w[at + "before_dense"]
        )
        grad = grad + more
        inner, found_gradients = _attention_back(grad, a, attention, w, at)
        gradients |= found_gradients
        more, gradients[at + "before_attention"] = _normalise_back(inner, norm_a, w[at + "before_attention"])
        grad = grad + more
    np.add.at(gradients["embedding"], tokens.reshape(-1), grad.reshape(-1, WIDTH))
    return value, gradients
