# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writing C: literals that read back exactly, identifiers, comments, tables and loop nests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyml.base.c_expr import Expr as Expr
from tinyml.base.c_expr import Operand as Operand
from tinyml.base.c_keywords import KEYWORDS
from tinyml.base.lazy_dataclass import dataclass

COLUMNS = 100
JOINED = "\u00a0"
TAB = "\t"
TAB_COLUMNS = 8


class Code(str):
    """Text that is C already. Templates print it as it is, and every other text through ``plain``."""

    __slots__ = ()


def code(lines: Iterable[str]) -> list[Code]:
    """Lines that the compiler itself wrote, and into which names of the model came escaped."""
    return [Code(line) for line in lines]


def plain(text: str) -> str:
    """``text`` as it may stand in a comment or between quotes: ASCII, one line, nothing that ends either."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(ch if " " <= ch <= "~" else "?" for ch in text)
    safe = text.replace("\\", "/").replace('"', "'").replace("??", "? ?")
    return safe.replace("*/", "* /").replace("/*", "/ *").replace("//", "/ /")


def identifier(text: str, fallback: str = "x") -> str:
    """A C identifier that resembles ``text``; names from a model are data, never code."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"
    return f"{name}_" if name in KEYWORDS else name


def printable(text: str, limit: int = 80) -> str:
    """``text`` made safe for a C comment: ASCII, one line, nothing that ends the comment."""
    safe = plain(text)
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."


def string(text: str) -> str:
    """A C string literal that holds the bytes of ``text``."""
    out = []
    for byte in text.encode():
        ch = chr(byte)
        if ch in '"\\?':
            out.append("\\" + ch)
        elif " " <= ch <= "~":
            out.append(ch)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def number(value: Any, dtype: np.dtype[Any]) -> str:
    """One element of ``dtype`` as a C literal; reading it back gives the same bits."""
    if dtype.kind == "f":
        return floating(value, dtype)
    if dtype.kind == "b":
        return "true" if value else "false"
    value = int(value)
    if dtype.kind == "u":
        if dtype.itemsize == 8:
            return f"UINT64_C({value})"
        return f"{value}u" if dtype.itemsize == 4 else str(value)
    if dtype.itemsize == 8:
        return "INT64_MIN" if value == -(1 << 63) else f"INT64_C({value})"
    return "INT32_MIN" if value == -(1 << 31) else str(value)


def boolean(value: bool) -> str:
    return "true" if value else "false"


def floating(value: Any, dtype: np.dtype[Any] | None = None) -> str:
    """A float (or double) literal; shortest text that reads back exactly."""
    dtype = dtype or np.dtype("float32")
    typed = dtype.type(value)
    if math.isnan(typed):
        return "NAN"
    if math.isinf(typed):
        return "INFINITY" if typed > 0 else "-INFINITY"
    text = np.format_float_scientific(typed, unique=True, trim="0")
    mantissa, exponent = text.split("e")
    power = int(exponent)
    if -5 <= power < 7:
        text = np.format_float_positional(typed, unique=True, trim="0")
    else:
        text = f"{mantissa}e{power}"
    return text if dtype.itemsize == 8 else f"{text}f"


def table_rows(array: npt.NDArray[Any], indent: str = TAB) -> list[str]:
    """The elements of an array as lines of an initialiser, filled up to the column limit."""
    width = COLUMNS - TAB_COLUMNS * indent.count(TAB)
    text = ", ".join(_numbers(array)) + ","
    rows: list[str] = []
    start = 0
    while len(text) - start > width:
        end = text.rfind(" ", start, start + width + 1)
        if end < start:  # one element that is longer than a line
            end = text.find(" ", start)
            if end < 0:
                break
        rows.append(indent + text[start:end])
        start = end + 1
    return [*rows, indent + text[start:]] if array.size else rows


def _numbers(array: npt.NDArray[Any]) -> list[str]:
    """``number`` of each element; common types in one go, since there may be millions of weights."""
    flat, dtype = array.reshape(-1), array.dtype
    if dtype.kind in "iu" and dtype.itemsize < 4:
        return [str(value) for value in flat.tolist()]
    if dtype == np.float32:
        return _floats(flat)
    return [number(value, dtype) for value in flat]


AT_ONCE = 1 << 16
"""Floats that become text together: the arrays on the way take a few hundred bytes for each."""
MANTISSA = 0x7FFFFF
DECADES = np.array([10.0**power for power in range(-3, 6)])
MOST_PLACES = 12  # of nine digits below the first decade
POWERS = np.array([10.0**power for power in range(MOST_PLACES + 1)])


def _floats(flat: npt.NDArray[np.float32]) -> list[str]:
    """``floating`` of each element."""
    bits, places = np.unique(flat.view(np.uint32), return_inverse=True)
    if bits.size < flat.size // 4:  # clustered weights, or those of float16
        texts = _floats(bits.view(np.float32))
        return [texts[place] for place in places.tolist()]
    found: list[str] = []
    for start in range(0, flat.size, AT_ONCE):
        part = flat[start : start + AT_ONCE]
        size = np.abs(part)
        plain = (size > 2e-4) & (size < 1e6) & (part.view(np.uint32) & MANTISSA != 0)
        texts = _shortest(part, plain).tolist()
        found += [
            f"{text!r}f" if simple else floating(value, part.dtype)
            for text, simple, value in zip(texts, (plain | (part == 0)).tolist(), part, strict=True)
        ]
    return found


def _shortest(part: npt.NDArray[np.float32], plain: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """For each of the ``plain`` floats, the double that Python prints as ``floating`` prints the float.

    That is the double next to the decimal number with the fewest places that reads back as the float. Nine
    digits tell all floats apart, and with fewer places the nearest number is tried each time. Below a power
    of two floats are denser than above it, so that another number than the nearest may do: powers of two are
    not plain. All products and numbers here are exact in double precision.
    """
    found = part.astype(np.float64)
    left = np.flatnonzero(plain)
    places = MOST_PLACES - np.searchsorted(DECADES, np.abs(found[left]), side="right")
    while left.size:
        power = POWERS[places]
        nearest = np.rint(part[left] * power) / power
        same = nearest.astype(np.float32) == part[left]
        found[left[same]] = nearest[same]
        more = same & (places > 0)
        left, places = left[more], places[more] - 1
    return found


def fill(items: Sequence[str], indent: str) -> list[str]:
    """Items side by side, as many to a line as the column limit allows."""
    lines: list[str] = []
    line = indent
    for item in items:
        candidate = line + item if line == indent else f"{line} {item}"
        if len(candidate.expandtabs(TAB_COLUMNS)) > COLUMNS and line != indent:
            lines.append(line)
            candidate = indent + item
        line = candidate
    return [*lines, line] if line != indent else lines


def initializer(members: Mapping[str, str], indent: str = TAB) -> list[str]:
    """Designated initialisers: numbers side by side, members of a nested structure in its braces."""
    lines: list[str] = []
    waiting: list[str] = []
    nested: dict[str, dict[str, str]] = {}
    for name, value in members.items():
        outer, dot, inner = name.removeprefix(".").partition(".")
        if dot:
            nested.setdefault(outer, {})[f".{inner}"] = value
    for name, value in members.items():
        outer, dot, _ = name.removeprefix(".").partition(".")
        if not dot:
            waiting.append(f"{name} = {value},")
        elif outer in nested:
            lines += fill(waiting, indent)
            waiting = []
            lines.append(f"{indent}.{outer} = {{")
            lines += initializer(nested.pop(outer), indent + TAB)
            lines.append(f"{indent}}},")
    return [*lines, *fill(waiting, indent)]


def wrap(text: str, indent: str, continuation: str = "") -> list[str]:
    """Break a long statement at spaces so that it stays within the column limit.

    ``JOINED`` stands for a space that is no place to break at.
    """
    lead = indent + (continuation or TAB)
    lines: list[str] = []
    current = indent
    for word in text.split(" "):
        candidate = current + word if current in (indent, lead) else f"{current} {word}"
        if len(candidate.expandtabs(TAB_COLUMNS)) > COLUMNS and current not in (indent, lead):
            lines.append(current)
            current = lead + word
        else:
            current = candidate
    return [line.replace(JOINED, " ") for line in (*lines, current)]


@dataclass(frozen=True)
class Walk:
    """How one operand moves through a loop nest: element strides per loop, and where it starts."""

    strides: tuple[int, ...]
    offset: int = 0


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major element strides of ``shape``."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """Strides with which a tensor of ``shape`` is walked over ``target``, 0 where it is repeated."""
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    strides = contiguous(padded)
    return tuple(
        0 if extent == 1 and wanted != 1 else stride
        for extent, wanted, stride in zip(padded, target, strides, strict=True)
    )


@dataclass(frozen=True)
class Nest:
    """A loop nest: the variable and the extent of each loop, and the index of each operand in its body."""

    extents: tuple[int, ...]
    names: tuple[str, ...]
    index: Mapping[str, Expr]


def nest(shape: Sequence[int], walks: Mapping[str, Walk], prefix: str = "i") -> Nest:
    """Loops over ``shape``; loops that every operand walks contiguously are merged."""
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    extents: list[int] = []
    strides: dict[str, list[int]] = {name: [] for name in walks}
    for axis in axes:
        extent = shape[axis]
        mergeable = bool(extents) and all(
            strides[name][-1] == walk.strides[axis] * extent for name, walk in walks.items()
        )
        if mergeable:
            extents[-1] *= extent
            for name, walk in walks.items():
                strides[name][-1] = walk.strides[axis]
        else:
            extents.append(extent)
            for name, walk in walks.items():
                strides[name].append(walk.strides[axis])
    names = [prefix] if len(extents) == 1 else [f"{prefix}{depth}" for depth in range(len(extents))]
    index = {name: _index_expression(names, strides[name], walk.offset) for name, walk in walks.items()}
    return Nest(tuple(extents), tuple(names), index)


def _index_expression(names: Sequence[str], strides: Sequence[int], offset: int) -> Expr:
    """offset + name * stride + …"""
    total = Expr(offset)
    for name, stride in zip(names, strides, strict=True):
        term = Expr(name) * abs(stride)
        total = total - term if stride < 0 else total + term
    return total
