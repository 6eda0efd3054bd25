# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention with masks drawn at random, of scores of any size: fused, it computes what its layers compute.

Masks hide by adding or by replacing, by a little or by a lot, whole keys, later keys, those out of a window
or any; scores are bytes or floats, times factors that make them larger or smaller than what hides them.
"""

from __future__ import annotations

import collections
from dataclasses import replace

import numpy as np
import pytest

import tinyml.ops.catalog  # noqa: F401  the parser knows operators that are imported
from tests.support.interpret import interpret
from tests.support.layer_kinds import random_values
from tinyml.ir import Array, Graph
from tinyml.ir.text_parser import parse
from tinyml.ir.verifier import verify
from tinyml.ops.attention.heads import Heads
from tinyml.passes.fuse_attention import fuse_attention

LOWEST = float(np.finfo(np.float32).min)
HIDING = (0.0, -3.0, -40.0, -60.0, -80.0, -100.0, -1e4, -1e9, -1e12, -1e30, LOWEST, -np.inf)
FACTORS = (1e-3, 0.125, 1.0, 30.0, 1e4, 1e8, 1e12)
INPUT, SCORES, WEIGHTS, RESULT = "q(0.02, -3)", "q(0.1, 4)", "q(0.00390625, -128)", "q(0.006, 5)"


def constant(array: Array) -> str:
    kind = "bool" if array.dtype == np.bool_ else "float32"
    shape = "x".join(map(str, array.shape)) or "scalar"
    values = " ".join(repr(float(v)) if kind == "float32" else str(int(v)) for v in array.reshape(-1))
    return f"const {kind}[{shape}] {{{values}}}"


def seen(rng: np.random.Generator, heads: int, queries: int, keys: int) -> Array:
    """Which keys a query sees, in a shape that is broadcast to (heads, queries, keys)."""
    q, k = np.arange(queries)[:, None], np.arange(keys)
    form = str(rng.choice(["later", "later", "window", "padding", "any", "heads"]))
    if form == "later":
        return k <= q + int(rng.integers(0, 3))
    if form == "window":
        return np.abs(k - q) <= int(rng.integers(0, 3))
    if form == "padding":
        return k < int(rng.integers(1, keys + 1))
    lead = (heads,) if form == "heads" else ()
    return rng.random((*lead, queries, keys)) < 0.6


def given(rng: np.random.Generator, lines: list[str], mask: Array, low: float) -> tuple[str, bool]:
    """The same mask by bits that arrive at run time as ``b``: what is added, or (true) what chooses; it may
    become wider than the bits are."""
    kind = str(rng.choice(["bool", "bool", "float32", "int64"]))
    shape = "x".join(map(str, mask.shape))
    lines.insert(0, f"input b: {kind}[{shape}]")
    bits = "b"
    if kind != "bool":
        lines.append(f"b0: bool[{shape}] = Cast(b; dtype=bool)")
    if kind == "bool" or rng.random() < 0.3:
        bits = "b0" if kind != "bool" else "b"
        if rng.random() < 0.5:
            return bits, True
        lines.append(f"f: float32[{shape}] = Cast({bits}; dtype=float32)")
        bits = "f"
    elif kind == "int64":
        lines.append(f"f: float32[{shape}] = Cast(b; dtype=float32)")
        bits = "f"
    factor = low if np.isfinite(low) else LOWEST
    lines.append(f"g: {binary(constant(np.asarray(1, np.float32)), bits, 'sub', shape)}")
    lines.append(f"h: {binary('g', constant(np.asarray(factor, np.float32)), 'mul', shape)}")
    return "h", False


def later(
    rng: np.random.Generator, lines: list[str], name: str, size: tuple[int, int, int], low: float
) -> str:
    """Later keys are hidden as well, mostly by the same number."""
    _, queries, keys = size
    shape = "x".join(map(str, size))
    visible = np.arange(keys) <= np.arange(queries)[:, None] + int(rng.integers(0, 3))
    low = low if rng.random() < 0.7 else float(rng.choice(HIDING))
    if rng.random() < 0.5:
        added = constant(np.where(visible, 0, low).astype(np.float32))
        lines.append(f"n: {binary(name, added, 'add', shape)}")
    else:
        hidden = constant(np.asarray(low, np.float32))
        lines.append(f"n: float32[{shape}] = Where({constant(visible)}, {name}, {hidden})")
    return "n"


def binary(left: str, right: str, function: str, shape: str) -> str:
    return (
        f"float32[{shape}] = Binary({left}, {right}; clamp=-infxinf, function={function}, round_once=False)"
    )


def drawn(seed: int, at_run_time: bool = False) -> Graph:
    rng = np.random.default_rng(seed)
    heads, queries, keys, depth = (int(n) for n in rng.integers((1, 1, 2, 1), (4, 7, 8, 6)))
    whole = bool(rng.random() < 0.5)
    kind, shape = "int8" if whole else "float32", f"{heads}x{queries}x{keys}"
    quants = (INPUT, SCORES, RESULT) if whole else ("", "", "")
    x, s, y = (f" {quant}" if quant else "" for quant in quants)
    mask = seen(rng, heads, queries, keys)
    low = float(rng.choice(HIDING))
    lines = [
        f"input q: {kind}[{heads}x{queries}x{depth}]{x}",
        f"input k: {kind}[{heads}x{keys}x{depth}]{x}",
        f"input v: {kind}[{heads}x{keys}x3]{x}",
        f"kt: {kind}[{heads}x{depth}x{keys}]{x} = Transpose(k; perm=0x2x1)",
        f"s: {kind}[{shape}]{s} = MatMul(q, kt; round_once={whole})",
    ]
    name = "s"
    if whole:
        lines.append(f"r: float32[{shape}] = Dequantize(s)")
        name = "r"
    if rng.random() < 0.7:
        factor = np.asarray(rng.choice(FACTORS), np.float32)
        lines.append(f"a: {binary(name, constant(factor), 'mul', shape)}")
        name = "a"
    if not whole and rng.random() < 0.3:
        lines.append(f"t: float32[{shape}] = Unary({name}; function=tanh)")
        cap = np.asarray(rng.choice((0.5, 30.0, 1e6)), np.float32)
        lines.append(f"c: {binary('t', constant(cap), 'mul', shape)}")
        name = "c"
    bits, chooses = given(rng, lines, mask, low) if at_run_time else ("", False)
    if at_run_time and rng.random() < 0.2:
        bias = constant(rng.normal(0, 2, (heads, queries, keys)).astype(np.float32))
        if chooses or rng.random() < 0.5:
            lines.append(f"e: {binary(name, bias, 'add', shape)}")
            name = "e"
        else:
            lines.append(f"e: {binary(bias, bits, 'add', shape)}")
            bits = "e"
    causal = at_run_time and rng.random() < 0.5
    first = causal and rng.random() < 0.5
    if first:
        name = later(rng, lines, name, (heads, queries, keys), low)
    if bits and chooses:
        hidden = constant(np.asarray(low, np.float32))
        operands = (bits, name, hidden) if rng.random() < 0.7 else (bits, hidden, name)
        lines.append(f"m: float32[{shape}] = Where({', '.join(operands)})")
    elif bits:
        lines.append(f"m: {binary(name, bits, 'add', shape)}")
    elif rng.random() < 0.6:
        added = np.where(mask, 0, low).astype(np.float32)
        lines.append(f"m: {binary(name, constant(added), 'add', shape)}")
    else:
        hidden = constant(np.asarray(low, np.float32))
        lines.append(f"m: float32[{shape}] = Where({constant(mask)}, {name}, {hidden})")
    name = later(rng, lines, "m", (heads, queries, keys), low) if causal and not first else "m"
    beta = float(rng.choice((1.0, 1.0, 1e-8, 0.5)))
    lines.append(f"p: float32[{shape}] = Softmax({name}; axis=2, beta={beta})")
    if whole:
        lines.append(
            f"w: int8[{shape}] {WEIGHTS} = Quantize(p; dtype=int8, quant={WEIGHTS}, halves_to_even=True)"
        )
    weights = "w" if whole else "p"
    lines += [f"y: {kind}[{heads}x{queries}x3]{y} = MatMul({weights}, v; round_once={whole})", "output y"]
    graph = parse("graph g\n" + "".join(f"  {line}\n" for line in lines))
    verify(graph, "parse")
    return graph


def fuses_alike(before: Graph, seed: int) -> bool:
    """Whether a graph is fused; the result is then the same, for bytes up to a step.

    Of queries whose scores are all -inf, only floats are compared: their weights are no numbers, and no byte
    stands for them.
    """
    after = fuse_attention(before)
    verify(after, "fuse_attention")
    for sample_number in range(2):
        rng = np.random.default_rng((seed, sample_number))
        sample = {name: random_values(rng, before.tensors[name]) for name in before.inputs}
        if "b" in sample:
            bits = before.tensors["b"]
            sample["b"] = (rng.random(bits.shape) < 0.6).astype(bits.dtype.numpy)
        with np.errstate(invalid="ignore", over="ignore"):
            parts = interpret(replace(before, outputs=("p", "y")), sample)
            old, new = parts["y"], interpret(after, sample)["y"]
        if old.dtype == np.int8:
            off = np.abs(old.astype(int) - new)
            assert np.where(np.isnan(parts["p"]).any(axis=2, keepdims=True), 0, off).max() <= 1
        else:
            np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-5)
    return any(isinstance(node.op, Heads) for node in after.nodes)


@pytest.mark.parametrize("start", range(0, 2000, 200))
@pytest.mark.tenth
def test_random_masks(start: int) -> None:
    campaign(start, at_run_time=False)


@pytest.mark.parametrize("start", range(10000, 12000, 200))
@pytest.mark.tenth
def test_random_masks_that_arrive_at_run_time(start: int) -> None:
    campaign(start, at_run_time=True)


def campaign(start: int, at_run_time: bool) -> None:
    fused: collections.Counter[bool] = collections.Counter()
    for seed in range(start, start + 200):
        try:
            fused[fuses_alike(drawn(seed, at_run_time), seed)] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert fused[True] > 40
    assert fused[False] > 20


@pytest.mark.parametrize("factor,low,fused", [(1.0, -1e9, True), (1e8, -1e9, False), (1e8, -1e10, True)])
@pytest.mark.parametrize("by", ["adding", "replacing"])
def test_what_scores_can_reach_decides_whether_a_mask_hides(
    by: str, factor: float, low: float, fused: bool
) -> None:
    """Bytes of 0.1 times 1e8 are up to 2.6e9 apart, so -1e9 is a score like others."""
    causal = np.tri(6, dtype=bool)
    added = constant(np.where(causal, 0, low).astype(np.float32))
    hidden = f"float32[2x6x6] = Where({constant(causal)}, a, {constant(np.asarray(low, np.float32))})"
    lines = [
        *(f"input {name}: int8[2x6x4] {INPUT}" for name in "qkv"),
        f"kt: int8[2x4x6] {INPUT} = Transpose(k; perm=0x2x1)",
        f"s: int8[2x6x6] {SCORES} = MatMul(q, kt; round_once=True)",
        "r: float32[2x6x6] = Dequantize(s)",
        f"a: {binary('r', constant(np.asarray(factor, np.float32)), 'mul', '2x6x6')}",
        f"m: {binary('a', added, 'add', '2x6x6') if by == 'adding' else hidden}",
        "p: float32[2x6x6] = Softmax(m; axis=2, beta=1.0)",
        f"w: int8[2x6x6] {WEIGHTS} = Quantize(p; dtype=int8, quant={WEIGHTS}, halves_to_even=True)",
        f"y: int8[2x6x4] {RESULT} = MatMul(w, v; round_once=True)",
        "output y",
    ]
    graph = parse("graph g\n" + "".join(f"  {line}\n" for line in lines))
    assert fuses_alike(graph, 1) == fused
