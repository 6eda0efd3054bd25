# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The work of a layer that is loops: amounts by name, whose costs ``tools.fit_own_loops`` finds on each core.

An amount says how often something is executed: an operation, a call, a statement, all statements of a loop,
a loop's turns and its beginnings. Names leave numbers out, except for what changes the machine code: whether
they are 0, 1 or a power of two, whether a rescale shifts left or right, whether an index moves by one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from math import frexp

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost.loops.tree import Block, Copy, parse
from tinyml.ir import Layer
from tinyml.ops.framework.tally import Tally

_TOKEN = re.compile(r"[A-Za-z_]\w*\(?|\[[^\]]*\]|-?N|-1|\d[\w.]*|<<|>>|[<>=!]=|&&|\|\||[-+*/%<>?=&|!~^]")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?f?\b")
_INDEX = re.compile(r"\[([^\[\]]*)\]")
_RESCALE = re.compile(r"(tinyml_rescale\w*\(.+?), (\d{8,10}), (-?\d+)\)")
_OFFSET = re.compile(r"tinyml_clamp\(\((\w+\[.*?\]) - \((-?\d+)\)\) \+ \((-?\d+)\), (-?\d+), (-?\d+)\)")
_DIVIDED = re.compile(r"tinyml_div_s\d+\((\w+\[[^\]]*\]), (?:INT64_C\()?(\d+)\)+")
_SHIFT = re.compile(r"(tinyml_shift_right_to_even\(\w+), (\d+)")
_QUANTIZED = re.compile(r"(tinyml_quantize_(?:even|away))(\(.+?, )(\d[\w.+-]*)f, ")
_ONCE = re.compile(r"(?<![\w.])1\.0f \* ")
_INPUT = re.compile(r"\b(?:\w+_in\d+|x\d*)\[")
_TABLE = re.compile(r"\b\w+_\w*table\w*\[")
_NUMBERED = re.compile(r"\b[vab]\d\b")
_IN_PARENTHESES = re.compile(r"(?<![\w)]) ?\((-?\d+)\)")

LENGTHS = {"tiny": 4, "short": 15, "medium": 64}
"""Bytes of a copy: what compilers and libraries do with it changes above these."""
UNROLLED = 8
"""Turns of a loop that a compiler may write out; of more turns it matters which vectors divide them."""
VECTORS = (16, 8, 4)
LARGE = 255
"""A power of two above this is a factor, which becomes a shift; a smaller one is a number like others."""


@dataclass(frozen=True)
class Setting:
    """What the same C costs different amounts for: types of elements, and memory that two tensors share."""

    kernel: str
    source: str  # the type of the first input
    types: str  # of all operands
    kind: str  # integers, integers of 64 bits, or floats
    element_bytes: int
    in_place: bool

    @property
    def place(self) -> str:
        return f"{self.types}{' in place' if self.in_place else ''}"


def loop_work(layer: Layer, kernel: str, tally: Tally) -> dict[str, float]:
    """The amounts of work of a layer whose function is known."""
    inputs = [t.dtype for t in layer.inputs if t is not None]
    outputs = [t.dtype for t in layer.outputs]
    types = f"{','.join(t.value for t in inputs)}>{','.join(t.value for t in outputs)}"
    kind = "float" if any(t.is_float for t in (*inputs, *outputs)) else "integer"
    if kind == "integer" and any(t.bytes == 8 for t in (*inputs, *outputs)):
        kind = "wide"
    source = inputs[0].value if inputs else ""
    setting = Setting(kernel, source, types, kind, outputs[0].bytes, tally.in_place)
    return work_of(tally.body, setting)


def work_of(body: str, setting: Setting) -> dict[str, float]:
    """The amounts of work of a function's body."""
    found: defaultdict[str, float] = defaultdict(float, {"layer": 1.0, f"layer {setting.kernel}": 1.0})
    tree = parse(body, setting.element_bytes, setting.in_place)
    for block in tree.blocks():
        for name, amount in _of_block(block, setting, tree.copies):
            found[name] += amount
    return dict(found)


def _of_block(block: Block, setting: Setting, copies: Mapping[str, Copy]) -> list[tuple[str, float]]:
    texts = [(text, times) for text, times in block.statements if text not in copies]
    texts += [(inner.opening, block.times) for inner in block.inner if not inner.is_loop]
    normal = [(normalized(text, block.counter, setting.source), times) for text, times in texts]
    found = [amount for text, times in normal for amount in _of_statement(text, times, setting)]
    for text, times in block.statements:
        if text in copies:
            found += _of_copy(copies[text], times)
    above = f" around {block.height}" if block.height else ""
    name = f"{setting.kernel}{above} {setting.place} {' '.join(text for text, _ in normal)}"
    found.append((f"body {name}", block.times))
    if block.is_loop:
        found += _of_loop(block, setting.kind, name)
        found += _of_nest(block, setting)
    return found


def _of_loop(block: Block, kind: str, name: str) -> list[tuple[str, float]]:
    begun = block.times / block.turns
    if block.height:
        outer = f"around {block.height} {kind}"
        return [(f"turn {outer}", block.times), (f"begin {outer}", begun)]
    turns = _turns(block.turns)
    return [
        (f"turn inner {kind}", block.times),
        (f"begin inner {kind}", begun),
        (f"turn {turns} {kind}", block.times),
        (f"begin {turns} {kind}", begun),
        (f"loop {turns} {name}", block.times),
        (f"start {name}", begun),
    ]


def _of_nest(block: Block, setting: Setting) -> list[tuple[str, float]]:
    """Two loops with so few turns that a compiler may write out both, if no condition is in between."""
    loops = [inner for inner in block.inner if inner.is_loop]
    if len(loops) != 1 or loops[0].height or max(block.turns, loops[0].turns) > UNROLLED:
        return []
    conditions = " if" if any(not inner.is_loop for inner in (*block.inner, *loops[0].inner)) else ""
    name = f"{block.turns} around {loops[0].turns}{conditions} {setting.kernel} {setting.types}"
    return [(f"turn {name}", loops[0].times), (f"begin {name}", block.times / block.turns)]


def _of_statement(text: str, times: float, setting: Setting) -> list[tuple[str, float]]:
    found = [
        (f"{'call' if token.endswith('(') else 'operation'} {setting.kind} {token}", times * count)
        for token, count in Counter(_TOKEN.findall(text)).items()
    ]
    calls = "with a call" if "tinyml_" in text else "without calls"
    return [*found, (f"statement {calls} {setting.place} {text}", times)]


def _of_copy(copy: Copy, times: float) -> list[tuple[str, float]]:
    length = next((name for name, size in LENGTHS.items() if copy.size <= size), "long")
    other = 1 - copy.backwards - copy.aligned
    ways = {"backwards": copy.backwards, "aligned": copy.aligned, "unaligned": other}
    return [
        amount
        for way, part in ways.items()
        if part > 0
        for name in (f"{copy.function} {length} {way}",)
        for amount in (
            (f"copy {name}", times * part),
            (f"copied words {name}", times * part * (copy.size // 4)),
            (f"copied bytes {name}", times * part * (copy.size % 4)),
        )
    ]


def normalized(text: str, counter: str, source: str) -> str:
    """A statement without what does not change its machine code; ``counter``: of the loop around it."""
    text = _OFFSET.sub(lambda match: _offset(match, source), text)
    text = _DIVIDED.sub(_divided, text)
    text = _INDEX.sub(lambda match: _index(match[1], counter), text)
    text = _RESCALE.sub(_rescale, text)
    text = _SHIFT.sub(lambda match: f"{match[1]}, {_size(int(match[2]))}", text)
    text = _ONCE.sub("", _QUANTIZED.sub(_quantized, text))
    text = _TABLE.sub("T[", _INPUT.sub("x[", text))
    text = _NUMBERED.sub("v", text)
    text = _IN_PARENTHESES.sub(r" \1", text)
    return _NUMBER.sub(lambda match: _number(match[0]), text)


def _offset(match: re.Match[str], source: str) -> str:
    """An element moved by a number, with the limits that some value reaches: a compiler knows the others."""
    limits = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
    low, high = limits.get(source, (-(2**31), 2**31))
    by = int(match[3]) - int(match[2])
    reached = "low" * (low + by < int(match[4])) + "high" * (high + by > int(match[5]))
    return f"offset({match[1]} {'by' if by else ''} {reached})"


def _divided(match: re.Match[str]) -> str:
    """A whole number divided by a power of two: compilers shift it, after an addition if it is below zero."""
    value, divisor = match[1], int(match[2])
    if divisor & (divisor - 1):
        return match[0]
    return f"({value} + ({value} >> 31 & {divisor})) >> 8"


def _index(text: str, counter: str) -> str:
    """Whether the loop moves it by one element, by more, or not at all."""
    if not counter or not re.search(rf"\b{counter}\b", text):
        return "[o]"
    return "[s]" if re.search(rf"\b{counter}\b \* (?!1\b)|- {counter}\b", text) else "[1]"


def _rescale(match: re.Match[str]) -> str:
    factor, shift = int(match[2]), int(match[3])
    way = "L" if shift > 0 else "R" if shift < 0 else "Z"
    return f"{match[1]}, {'P' if factor & (factor - 1) == 0 else 'M'}, {way})"


def _quantized(match: re.Match[str]) -> str:
    """A float divided by a scale: compilers multiply if that is a power of two, and do not divide by 1."""
    scale = float(match[3])
    way = "_undivided" if scale == 1 else "_multiplied" if frexp(scale)[0] == 0.5 else ""
    return f"{match[1]}{way}{match[2]}N, "


def _size(shift: int) -> str:
    """Where the result of a shift of 64 bits is: in both words, or in one."""
    return "low" if shift < 32 else "mid" if shift == 32 else "high"


def _number(text: str) -> str:
    if text in ("0", "1", "-1", "0.0f", "1.0f") or not text.lstrip("-").isdigit():
        return text if text in ("0", "1", "-1", "0.0f", "1.0f") else "N"
    value = abs(int(text))
    return (
        f"{'-' if text.startswith('-') else ''}{'P' if value & (value - 1) == 0 and value > LARGE else 'N'}"
    )


def _turns(count: int) -> str:
    if count <= UNROLLED:
        return str(count)
    return f"by {next((size for size in VECTORS if count % size == 0), 1)}"
