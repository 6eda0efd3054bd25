# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The counters of a period as figures that people read: shares, means, drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import DType
from tinyml.watch import cbor
from tinyml.watch.keys import value_of
from tinyml.watch.plan import BINS, WHOLE

TYPES = tuple(DType)
"""enum tinyml_type."""


@dataclass(frozen=True)
class ValueFigures:
    """An input, or an output that is no decision."""

    name: str
    bins: tuple[int, ...]  # empty if it is not counted
    edges: tuple[float, ...]  # stored values with which bins 1 to 7 begin
    reference: tuple[int, ...]  # shares in 1/32768; empty if there is none
    drift: float | None  # 0: as the reference; 1: nothing in common

    @property
    def shares(self) -> tuple[float, ...]:
        total = sum(self.bins)
        return tuple(count / total for count in self.bins) if total else ()

    @property
    def expected(self) -> tuple[float, ...]:
        return tuple(share / WHOLE for share in self.reference)

    @property
    def outside(self) -> float:
        """The share of elements at the ends of the range, or outside it."""
        return self.shares[0] + self.shares[-1] if self.shares else 0.0


@dataclass(frozen=True)
class ClassFigures:
    """An output with classes. Means are None if nothing was counted."""

    name: str
    classes: int
    switches: int
    switch_rate: float  # per run
    top: float | None  # mean score of the decision
    margin: float | None  # mean distance to the second score
    entropy: float | None  # mean, in bits
    decisions: tuple[int, ...]  # empty if there are too many classes
    transitions: tuple[tuple[int, ...], ...] = field(repr=False)  # from, to; halved when one is full


@dataclass(frozen=True)
class Figures:
    """What a model has seen and decided in a period."""

    name: str  # of the model
    sha256: str  # the first eight bytes
    version: int  # of the model, as its file has it
    runs: int  # in this period
    most_runs: int  # that a period can have
    errors: int  # runs that failed
    cycles_min: int  # of one run
    cycles_mean: float  # of one run
    cycles_max: int  # of one run
    inputs: tuple[ValueFigures, ...]  # one by one
    outputs: tuple[ValueFigures | ClassFigures, ...]  # one by one
    raw: Mapping[str, Any] = field(repr=False)  # the counters themselves
    channels: tuple[ValueFigures, ...] = ()  # of the first input, if they are counted one by one

    @property
    def drift(self) -> float | None:
        """The largest of all inputs and channels; None without a reference or without runs."""
        parts = (*self.inputs, *self.channels)
        return max((part.drift for part in parts if part.drift is not None), default=None)

    @property
    def decided(self) -> ClassFigures | None:
        """The first output with classes."""
        return next((part for part in self.outputs if isinstance(part, ClassFigures)), None)

    @property
    def cbor(self) -> bytes:
        """The counters as a device encodes them."""
        return cbor.encode(dict(self.raw))


def of_cbor(data: bytes) -> Figures:
    """From what ``tinyml_watch_encode()`` wrote."""
    return figures(cbor.decode(data))


def figures(raw: Any) -> Figures:
    """From counters, as CBOR has them."""
    try:
        runs = _number(raw["runs"])
        low, high, cycles = (_number(number) for number in raw["cycles"])
        return Figures(
            str(raw["name"]),
            bytes(raw["sha256"]).hex(),
            _number(raw["version"]),
            runs,
            _number(raw["most"]),
            _number(raw["errors"]),
            low,
            cycles / runs if runs else 0.0,
            high,
            tuple(_values(part) for part in raw["inputs"]),
            tuple(_classes(p, runs) if "classes" in p else _values(p) for p in raw["outputs"]),
            raw,
            tuple(
                replace(_values(part), name=f"{part['name']}[{index}]")
                for index, part in enumerate(raw.get("channels", ()))
            ),
        )
    except (KeyError, TypeError, ValueError, IndexError):
        raise ToolError(
            "these are not the counters of a model", "the same version of west-tinyml on both sides"
        ) from None


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _values(part: Mapping[str, Any]) -> ValueFigures:
    if "bins" not in part:
        return ValueFigures(str(part["name"]), (), (), (), None)
    bins = tuple(map(_number, part["bins"]))
    if len(bins) != BINS:
        raise ValueError(bins)
    dtype = TYPES[_number(part["type"])]
    drift = _number(part.get("drift", -1))
    return ValueFigures(
        str(part["name"]),
        bins,
        tuple(value_of(_number(edge), dtype) for edge in part["edges"]),
        tuple(map(_number, part.get("reference", ()))),
        drift / 10000 if drift >= 0 else None,
    )


def _classes(part: Mapping[str, Any], runs: int) -> ClassFigures:
    count = _number(part["classes"])

    def mean(key: str, unit: int) -> float | None:
        return _number(part[key]) / unit / runs if key in part and runs else None

    return ClassFigures(
        str(part["name"]),
        count,
        _number(part["switches"]),
        _number(part["switches"]) / (runs - 1) if runs > 1 else 0.0,
        mean("top", 256),
        mean("margin", 256),
        mean("entropy", 32),
        tuple(map(_number, part.get("decisions", ()))),
        _matrix(bytes(part.get("transitions", b"")), count),
    )


def _matrix(transitions: bytes, classes: int) -> tuple[tuple[int, ...], ...]:
    """Rows are the class before, columns the class after; none stays where it is."""
    if len(transitions) != classes * (classes - 1):
        return ()
    rows: Sequence[bytes] = [transitions[i * (classes - 1) : (i + 1) * (classes - 1)] for i in range(classes)]
    return tuple((*row[:index], 0, *row[index:]) for index, row in enumerate(rows))
