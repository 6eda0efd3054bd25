# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Passes as text in, text out; and the parser that makes this possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent

import pytest

import tinyml.ops  # noqa: F401  the parser knows operators that are imported
from tinyml.errors import ModelError
from tinyml.ir import Graph
from tinyml.passes.fold_constants import fold_constants
from tinyml.passes.fuse_activation import fuse_activation
from tinyml.passes.move_quantization import move_quantization
from tinyml.passes.sink_reshape import sink_reshape
from tinyml.passes.unsigned_to_signed import unsigned_to_signed
from tinyml.text import dump
from tinyml.text_parser import parse
from tinyml.verify import verify


@dataclass(frozen=True)
class Rewrite:
    name: str
    step: Callable[[Graph], Graph]
    before: str
    after: str | None = None  # None: nothing changes


REWRITES = [
    Rewrite(
        "a clamp goes into the layer before it",
        fuse_activation,
        """
        input x: float32[1x4]
        a: float32[1x4] = Binary(x, x; clamp=-infxinf, function=add, round_once=False)
        y: float32[1x4] = Clamp(a; low=0.0, high=6.0)
        output y
        """,
        """
        input x: float32[1x4]
        y: float32[1x4] = Binary(x, x; clamp=0.0x6.0, function=add, round_once=False)
        output y
        """,
    ),
    Rewrite(
        "a clamp that changes the scale stays",
        fuse_activation,
        """
        input x: int8[1x4] q(0.1, 3)
        a: int8[1x4] q(0.2, 0) = Binary(x, x; clamp=-infxinf, function=add, round_once=False)
        y: int8[1x4] q(0.1, 0) = Clamp(a; low=0.0, high=6.0)
        output y
        """,
    ),
    Rewrite(
        "a clamp stays if what is before it has another reader",
        fuse_activation,
        """
        input x: float32[1x4]
        a: float32[1x4] = Binary(x, x; clamp=-infxinf, function=add, round_once=False)
        y: float32[1x4] = Clamp(a; low=0.0, high=6.0)
        z: float32[1x4] = Binary(a, y; clamp=-infxinf, function=mul, round_once=False)
        output z
        """,
    ),
    Rewrite(
        "a clamp stays if what is before it is an output",
        fuse_activation,
        """
        input x: float32[1x4]
        a: float32[1x4] = Binary(x, x; clamp=-infxinf, function=add, round_once=False)
        y: float32[1x4] = Clamp(a; low=0.0, high=6.0)
        output y
        output a
        """,
    ),
    Rewrite(
        "a Dequantize moves after a reshape",
        move_quantization,
        """
        input x: int8[2x3] q(0.1, 3)
        r: float32[2x3] = Dequantize(x)
        y: float32[6] = Reshape(r; shape=6)
        output y
        """,
        """
        input x: int8[2x3] q(0.1, 3)
        r: float32[2x3] = Dequantize(x)
        y/q: int8[6] q(0.1, 3) = Reshape(x; shape=6)
        y: float32[6] = Dequantize(y/q)
        output y
        """,
    ),
    Rewrite(
        "a Dequantize per channel stays before a reshape",
        move_quantization,
        """
        input x: int8[2x3] q(axis 0, 0.1 0.2, 0 0)
        r: float32[2x3] = Dequantize(x)
        y: float32[6] = Reshape(r; shape=6)
        output y
        """,
    ),
    Rewrite(
        "a Quantize moves before a transpose",
        move_quantization,
        """
        input x: float32[2x3]
        t: float32[3x2] = Transpose(x; perm=1x0)
        y: int8[3x2] q(0.1, 3) = Quantize(t; dtype=int8, quant=q(0.1, 3), halves_to_even=True)
        output y
        """,
        """
        input x: float32[2x3]
        x/q: int8[2x3] q(0.1, 3) = Quantize(x; dtype=int8, quant=q(0.1, 3), halves_to_even=True)
        y: int8[3x2] q(0.1, 3) = Transpose(x/q; perm=1x0)
        output y
        """,
    ),
    Rewrite(
        "a Quantize stays after a transpose that is an output too",
        move_quantization,
        """
        input x: float32[2x3]
        t: float32[3x2] = Transpose(x; perm=1x0)
        y: int8[3x2] q(0.1, 3) = Quantize(t; dtype=int8, quant=q(0.1, 3), halves_to_even=True)
        output y
        output t
        """,
    ),
    Rewrite(
        "inner uint8 becomes int8, inputs and outputs are converted",
        unsigned_to_signed,
        """
        input x: uint8[4] q(0.1, 130)
        a: uint8[4] q(0.1, 130) = Clamp(x; low=-1.0, high=1.0)
        y: uint8[4] q(0.1, 130) = Clamp(a; low=0.0, high=1.0)
        output y
        """,
        """
        input x: uint8[4] q(0.1, 130)
        x/s8: int8[4] q(0.1, 2) = Requantize(x; round_once=False)
        a: int8[4] q(0.1, 2) = Clamp(x/s8; low=-1.0, high=1.0)
        y/s8: int8[4] q(0.1, 2) = Clamp(a; low=0.0, high=1.0)
        y: uint8[4] q(0.1, 130) = Requantize(y/s8; round_once=False)
        output y
        """,
    ),
    Rewrite(
        "constants change with their zero point",
        unsigned_to_signed,
        """
        input x: float32[2]
        r: float32[2] = Dequantize(const uint8[2] q(0.1, 128) {0 255})
        y: float32[2] = Binary(x, r; clamp=-infxinf, function=add, round_once=False)
        output y
        """,
        """
        input x: float32[2]
        r: float32[2] = Dequantize(const int8[2] q(0.1, 0) {-128 127})
        y: float32[2] = Binary(x, r; clamp=-infxinf, function=add, round_once=False)
        output y
        """,
    ),
    Rewrite(
        "bytes are converted where they are given a meaning",
        unsigned_to_signed,
        """
        input x: uint8[2x3]
        t: uint8[3x2] q(0.1, 128) = Transpose(x; perm=1x0)
        y: float32[3x2] = Dequantize(t)
        output y
        """,
        """
        input x: uint8[2x3]
        t: uint8[3x2] q(0.1, 128) = Transpose(x; perm=1x0)
        t/s8: int8[3x2] q(0.1, 0) = Requantize(t; round_once=False)
        y: float32[3x2] = Dequantize(t/s8)
        output y
        """,
    ),
    Rewrite(
        "bytes that are numbers of their own stay unsigned",
        unsigned_to_signed,
        """
        input x: uint8[4]
        y: uint8[4] = Binary(x, x; clamp=-infxinf, function=max, round_once=False)
        output y
        """,
    ),
    Rewrite(
        "what depends on constants alone is computed",
        fold_constants,
        """
        input x: float32[2]
        a: float32[2] = Clamp(const float32[2] {4 9}; low=-1.0, high=8.0)
        b: float32[2] = Clamp(a; low=0.0, high=6.0)
        y: float32[2] = Binary(x, b; clamp=-infxinf, function=mul, round_once=False)
        output y
        """,
        """
        input x: float32[2]
        y: float32[2] = Binary(x, const float32[2] {4 6}; clamp=-infxinf, function=mul, round_once=False)
        output y
        """,
    ),
    Rewrite(
        "a constant output is still computed",
        fold_constants,
        """
        input x: float32[2]
        y: float32[2] = Clamp(const float32[2] {1 9}; low=0.0, high=6.0)
        z: float32[2] = Binary(x, x; clamp=-infxinf, function=mul, round_once=False)
        output y
        output z
        """,
    ),
    Rewrite(
        "a reshape does not sink past a quantisation per channel",
        sink_reshape,
        """
        input x: float32[2x3]
        r: float32[3x2] = Reshape(x; shape=3x2)
        q: int8[3x2] q(axis 0, 0.1 0.2 0.3, 0 0 0) = Quantize(r; dtype=int8, quant=q(axis 0, 0.1 0.2 0.3, 0 0 0), halves_to_even=True)
        y: float32[3x2] = Dequantize(q)
        output y
        """,  # noqa: E501
    ),
]


def normal(text: str) -> str:
    """As ``dump`` prints it."""
    lines = dedent(text).strip().splitlines()
    return "graph g\n" + "".join(f"  {line}\n" for line in lines)


@pytest.mark.parametrize("case", REWRITES, ids=lambda case: f"{case.step.__name__}: {case.name}")
def test_rewrite(case: Rewrite) -> None:
    graph = parse(normal(case.before))
    verify(graph, "the test")
    after = case.step(graph)
    verify(after, case.step.__name__)
    assert dump(after) == normal(case.after if case.after is not None else case.before)


@pytest.mark.parametrize("case", REWRITES, ids=lambda case: case.name)
def test_parser_reads_what_is_dumped(case: Rewrite) -> None:
    assert dump(parse(normal(case.before))) == normal(case.before)


def test_parser_reads_states_and_absent_operands() -> None:
    text = normal("""
        input x: float32[1x4]
        state s: float32[1x4] <- y
        a: float32[1x4] = Binary(x, s; clamp=-infxinf, function=add, round_once=False)
        y: float32[1x4] = Dense(a, const float32[4x4], -; clamp=-infxinf, round_once=False)
        output y
        """)
    assert dump(parse(text)) == text


@pytest.mark.parametrize(
    "line, words",
    [
        ("y: float32[1x4] = Nonsense(x)", "is not a node"),
        ("y = Reshape(x)", "is not a type"),
        ("y: float32[4] = Clamp(x; width=3)", "has no attribute 'width'"),
        ("y: int8[2] q(axis 0, 2 scales) = Reshape(x)", "are not in the text"),
    ],
)
def test_parser_refuses(line: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse(f"graph g\n  input x: float32[4]\n  {line}\n")
