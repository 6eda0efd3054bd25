# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""C expressions that know how tightly they bind, so that composing them never changes their meaning.

``Expr("i0 * 2 + i1") * 3`` is ``(i0 * 2 + i1) * 3``: parentheses appear where C needs them and nowhere else.
An f-string that multiplies a piece of text has no such knowledge; a test finds those.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Union

PRIMARY, UNARY, PRODUCT, SUM, SHIFT, COMPARISON, BITS, LOGIC, CONDITION = range(9)
"""Groups of operators, the tightest first. Bitwise operators are one group, and so are logical ones."""

_OPERATORS = {
    **dict.fromkeys(("*", "/", "%"), PRODUCT),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("<<", ">>"), SHIFT),
    **dict.fromkeys(("<", ">", "<=", ">=", "==", "!="), COMPARISON),
    **dict.fromkeys(("&", "^", "|"), BITS),
    **dict.fromkeys(("&&", "||"), LOGIC),
    **dict.fromkeys(("?", ":", ",", "="), CONDITION),
}

_TOKEN = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(?:(?P<operand>[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||->|\+\+|--|[-+*/%<>&^|?:,=!~.])"
    r"|(?P<bracket>[()\[\]{}])|$)"
)

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CAST = re.compile(
    r"\(\s*(?:const\s+)?(?:u?int\d*_t|int|float|double|bool|char|size_t|(?:struct|enum)\s+\w+)[\s*]*\)"
)


@cache
def binding(text: str) -> int:
    """The group of the loosest operator of a C expression outside its brackets."""
    loosest, position, operand, depth = PRIMARY, 0, False, 0
    text = text.strip()
    while position < len(text):
        cast = _CAST.match(text, position) if not operand and not depth else None
        if cast is not None:
            loosest, position = max(loosest, UNARY), cast.end()
            continue
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"{text!r} is not a C expression")
        position = token.end()
        bracket, operator = token["bracket"], token["operator"]
        if bracket is not None:
            depth += 1 if bracket in _CLOSING else -1
            operand = bracket not in _CLOSING
        elif operator is None:
            operand = True
        elif operator in (".", "->"):
            operand = False
        elif depth == 0:
            loosest = max(loosest, _OPERATORS.get(operator, UNARY) if operand else UNARY)
            operand = operand and operator in ("++", "--")
        else:
            operand = False
    if depth:
        raise ValueError(f"{text!r} is not a C expression")
    return loosest


Operand = Union["Expr", str, int]
"""What an expression can be composed with: another one, C text, or an integer."""


class Expr:
    """A C expression of index arithmetic. ``+``, ``-``, ``*``, ``/``, ``%`` and comparisons compose, as in C.

    Sums without their zeros and products without their ones, so that code for an axis of extent 1 needs no
    case of its own. Printing gives the text, which may stand alone: between brackets, as an argument, or to
    the right of ``=``.
    """

    __slots__ = ("binds", "text")

    def __init__(self, value: Operand) -> None:
        self.text: str = str(value)
        self.binds: int = value.binds if isinstance(value, Expr) else binding(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr | str | int) and self.text == str(other)

    def __hash__(self) -> int:
        return hash(self.text)

    def within(self, group: int) -> str:
        """The text as an operand of an operator of this group: in parentheses if it binds less tightly."""
        return f"({self.text})" if self.binds > group else self.text

    def __add__(self, other: Operand) -> Expr:
        other = Expr(other)
        if other == 0 or self == 0:
            return self if other == 0 else other
        if re.fullmatch(r"-\d+", other.text):
            return self - Expr(other.text[1:])
        return Expr(f"{self.within(SUM)} + {other.within(SUM)}")

    def __radd__(self, other: Operand) -> Expr:
        return Expr(other) + self

    def __sub__(self, other: Operand) -> Expr:
        other = Expr(other)
        if other == 0:
            return self
        negative = other.within(PRODUCT)
        return Expr(f"-{negative}" if self == 0 else f"{self.within(SUM)} - {negative}")

    def __rsub__(self, other: Operand) -> Expr:
        return Expr(other) - self

    def __mul__(self, other: Operand) -> Expr:
        other = Expr(other)
        if 0 in (self, other):
            return Expr(0)
        if 1 in (self, other):
            return self if other == 1 else other
        return Expr(f"{self.within(UNARY)} * {other.within(UNARY)}")

    def __rmul__(self, other: Operand) -> Expr:
        return Expr(other) * self

    def __floordiv__(self, other: Operand) -> Expr:
        """C's ``/``."""
        other = Expr(other)
        return self if other == 1 else Expr(f"{self.within(PRODUCT)} / {other.within(UNARY)}")

    def __mod__(self, other: Operand) -> Expr:
        return Expr(f"{self.within(PRODUCT)} % {Expr(other).within(UNARY)}")

    def __rshift__(self, other: Operand) -> Expr:
        return Expr(f"{self.within(SUM)} >> {Expr(other).within(SUM)}")

    def __lt__(self, other: Operand) -> Expr:
        return self._compared("<", other)

    def __le__(self, other: Operand) -> Expr:
        return self._compared("<=", other)

    def __gt__(self, other: Operand) -> Expr:
        return self._compared(">", other)

    def __ge__(self, other: Operand) -> Expr:
        return self._compared(">=", other)

    def _compared(self, operator: str, other: Operand) -> Expr:
        return Expr(f"{self.within(SHIFT)} {operator} {Expr(other).within(SHIFT)}")

    def cast(self, type_: str) -> Expr:
        """The value converted to a C type."""
        return Expr(f"({type_}){self.within(UNARY)}")

    def of(self, array: str) -> Expr:
        """The element of an array at this index."""
        return Expr(f"{array}[{self.text}]")
