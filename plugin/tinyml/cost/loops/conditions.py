# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Conditions of C on loop counters, decided for all combinations of the counters at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
_WORD = re.compile(r"[A-Za-z_]\w*")


class UnknownCondition(ValueError):
    """A condition that is more than comparisons of whole numbers and counters."""


def counters_of(condition: str) -> list[str]:
    """The names in a condition, in order."""
    return sorted(set(_WORD.findall(condition)))


def true_part(condition: str, counters: Mapping[str, Sequence[int]]) -> float:
    """The part of all combinations of the counters' values for which a condition of C is true."""
    grids = np.meshgrid(*(np.asarray(values, np.int64) for values in counters.values()), indexing="ij")
    text = condition.replace("||", " or ").replace("&&", " and ")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UnknownCondition(condition) from error
    return float(np.mean(_value(tree.body, dict(zip(counters, grids, strict=True))) != 0))


def _value(node: ast.expr, counters: Mapping[str, Numbers]) -> Numbers:
    match node:
        case ast.Constant(value=int(number)):
            return np.asarray(number, np.int64)
        case ast.Name(id=name) if name in counters:
            return counters[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return np.negative(_value(operand, counters))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            return _ARITHMETIC[type(operator)](_value(left, counters), _value(right, counters))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARED:
            return _COMPARED[type(comparison)](_value(left, counters), _value(right, counters))
        case ast.BoolOp(op=operator, values=values):
            joined = np.logical_and if isinstance(operator, ast.And) else np.logical_or
            return reduce(joined, (_value(value, counters) for value in values))
    raise UnknownCondition(ast.dump(node))


def _quotient(left: Numbers, right: Numbers) -> Numbers:
    """As in C: towards zero."""
    if not np.all(right):
        raise UnknownCondition("division by zero")
    return np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right))


def _remainder(left: Numbers, right: Numbers) -> Numbers:
    return left - right * _quotient(left, right)


_ARITHMETIC: dict[type[ast.operator], Callable[[Numbers, Numbers], Numbers]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: _quotient,
    ast.Mod: _remainder,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Numbers, Numbers], Numbers]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
