# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""C expressions keep their meaning when they are composed; test_ops.py looks at all generated C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.precedence import marked_expressions, torn, torn_fields
from tinyml.base import c
from tinyml.base.c_expr import COMPARISON, CONDITION, LOGIC, PRIMARY, PRODUCT, SUM, UNARY, Expr, binding

PLUGIN = Path(c.__file__).resolve().parents[1]

BINDINGS = {
    "x": PRIMARY,
    "12": PRIMARY,
    "1.5e-3f": PRIMARY,
    "f(a + b, c)[i * 2]": PRIMARY,
    "at->shape.rows[2]": PRIMARY,
    "(a + b)": PRIMARY,
    "INT64_C(5)": PRIMARY,
    "-3": UNARY,
    "!ready": UNARY,
    "*to": UNARY,
    "&y[i + 1]": UNARY,
    "(int64_t)x[i]": UNARY,
    "(const int8_t *)p": UNARY,
    "a * -3": PRODUCT,
    "(int64_t)a * b": PRODUCT,
    "i % 4": PRODUCT,
    "i0 * 2 + i1": SUM,
    "1e-3f - x": SUM,
    "a < b": COMPARISON,
    "a < b && c > d": LOGIC,
    "k == hot ? 1 : 0": CONDITION,
}


@pytest.mark.parametrize("text", BINDINGS)
def test_binding(text: str) -> None:
    assert binding(text) == BINDINGS[text]


@pytest.mark.parametrize("text", ["(a", "a)) + (b", "a @ b"])
def test_what_is_not_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="not a C expression"):
        binding(text)


def test_parentheses_where_they_are_needed_and_nowhere_else() -> None:
    i, j = Expr("i"), Expr("j")
    assert str((i * 2 + j) * 3 + 1) == "(i * 2 + j) * 3 + 1"
    assert str(i * 2 + j * 3) == "i * 2 + j * 3"
    assert str(4 - (i - j)) == "4 - (i - j)"
    assert str(i - j - 4) == "i - j - 4"
    assert str((i + 1) // 2 % 8) == "(i + 1) / 2 % 8"
    assert str((i + j).cast("int8_t")) == "(int8_t)(i + j)"
    assert str((i + 1 < j).of("table")) == "table[i + 1 < j]"
    assert str(i * Expr("a ? b : c")) == "i * (a ? b : c)"
    assert str(i * 1 + j * 0) == "i"
    assert str(i + -3) == "i - 3"
    assert str(0 - i * 2) == "-i * 2"


def _drawn(rng: np.random.Generator, depth: int) -> tuple[Expr, int]:
    """A composed expression, and its value for a = 7, b = -5, d = 3."""
    if depth == 0:
        name = str(rng.choice(["a", "b", "d"]))
        return Expr(name), {"a": 7, "b": -5, "d": 3}[name]
    (x, x_value), (y, y_value) = _drawn(rng, depth - 1), _drawn(rng, int(rng.integers(depth)))
    match int(rng.integers(5)):
        case 0:
            return x + y, x_value + y_value
        case 1:
            return x - y, x_value - y_value
        case 2:
            return x * y, x_value * y_value
        case 3:
            return x % 11, x_value % 11
        case _:
            return x // 3, x_value // 3


def test_values_survive_composition() -> None:
    """Python's precedence of these operators is C's."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        expression, value = _drawn(rng, int(rng.integers(1, 6)))
        assert eval(str(expression).replace("/", "//"), {"a": 7, "b": -5, "d": 3}) == value, expression


def test_a_torn_expression_is_found() -> None:
    with marked_expressions():
        i = Expr("i0 * 2") + "i1"
        assert torn(f"y[{i}] = x[{i} * 2];") == ["y[i0 * 2 + i1] = x[i0 * 2 + i1 * 2];"]
        assert torn(f"y[({i}) * 2 + {i}] = 3 - ({i});") == []
        assert torn(f"y = 3 - {i};") == ["y = 3 - i0 * 2 + i1;"]
        assert torn(f"y = (int8_t){i};") == ["y = (int8_t)i0 * 2 + i1;"]
        assert torn(f"const int8_t *p = {i}; *q = {i};") == []


def test_a_torn_field_is_found() -> None:
    fault = 'def f(n):\n    i = f"{n} + k" if n else "k"\n    return f"x[{i} * {n}]"\n'
    assert torn_fields(fault) == ["line 3: i"]
    assert torn_fields(fault.replace("{i} *", "({i}) *")) == []


def test_no_source_joins_a_product_with_a_sum() -> None:
    found = {}
    for path in sorted(
        path for room in ("emit", "features", "memory", "ops") for path in (PLUGIN / room).rglob("*.py")
    ):
        if fields := torn_fields(path.read_text()):
            found[str(path.relative_to(PLUGIN))] = fields
    assert found == {}


def test_a_parameter_stays_in_one_piece() -> None:
    parameters = ", ".join(f"const int8_t *x{i}".replace(" ", c.JOINED) for i in range(9))
    lines = c.wrap(f"static void layer({parameters})", "")
    assert len(lines) == 2
    assert lines[0].endswith("*x3,")
    assert lines[1].startswith("\tconst int8_t *x4,")
