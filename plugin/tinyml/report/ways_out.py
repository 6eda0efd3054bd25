# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What else a user could choose when a model needs too much memory, with the bytes of each choice.

Each choice is compiled, so its figures are as exact as those of the model that did not fit. This happens
only after the model was found to be too large.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tinyml.base.errors import TinymlError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.generated_samples import generated
from tinyml.ir import DType
from tinyml.pipeline import Compiled, ModelFile, Options, compile_model, read_graph
from tinyml.report import budget
from tinyml.settings.optimize import GOALS
from tinyml.settings.quantize_request import Request
from tinyml.settings.setting import COMMAND, INI

SAMPLES = 8  # for a trial in int8: sizes do not depend on them
DATA = "CALIBRATION"  # what a message writes for the file with the user's samples


@dataclass(frozen=True)
class Way:
    """Settings that need less memory."""

    settings: Mapping[str, str]  # by name
    bytes: int
    slower: float | None = None  # instructions, as a multiple; None if they are not known or do not compare

    def written(self, place: str) -> str:
        """As the user writes it, on the command line, in platformio.ini or in tinyml.yaml."""
        if place == COMMAND:
            words = [f"--{name} {value}" for name, value in self.settings.items()]
            return f"`{' '.join(words)}`"
        if place == INI:
            lines = [f"`custom_tinyml_{name} = {value}`" for name, value in self.settings.items()]
        else:
            lines = [
                f"`{name}: {f'{{calibration: {value}}}' if name == 'quantize' else value}`"
                for name, value in self.settings.items()
            ]
        return " with ".join(lines)

    def priced(self, place: str) -> str:
        """What it is and what it costs, as part of a sentence."""
        often = f", {self.slower:.2f} times the instructions" if self.slower else ""
        return f"{self.written(place)} ({self.bytes:,} bytes{often})"


Needed = Callable[[Compiled], int]
"""The bytes that a compiled model needs of what is short."""


def pricing(
    model: Path | ModelFile,
    options: Options,
    now: Compiled,
    place: str,
    weights_in_ram: bool = False,
    rows: bool = True,
) -> budget.Ways:
    """The settings that help a compiled model which exceeds a limit, for ``budget.check``.

    Without ``rows``, the program passes whole inputs.
    """

    def ways(kind: str, limit: budget.Limit) -> list[str]:
        def needed(compiled: Compiled) -> int:
            from tinyml.cost.estimate import estimate_for

            found = estimate_for(compiled)
            flash = found.flash_bytes if found else None
            return budget.needs(kind, compiled.summary, weights_in_ram, flash)[1]

        found = list(ways_out(model, options, needed, now, rows))
        if weights_in_ram and kind == "ram":
            less = needed(now) - int(now.summary["weights_bytes"])
            found.insert(0, Way({"weights": "flash"}, less))
        return fitting(found, limit.bytes, place)

    return ways


def ways_out(
    model: Path | ModelFile, options: Options, needed: Needed, now: Compiled, rows: bool = True
) -> tuple[Way, ...]:
    """Every choice with which the model needs less than now, the fastest first."""
    bytes_now, time_now = needed(now), _instructions(now)
    found: dict[int, Way] = {}
    for settings, choice in _choices(model, options, now, rows):
        try:
            compiled = compile_model(model, choice)
        except TinymlError:
            continue  # this model cannot have it
        way = Way(settings, needed(compiled), _times(_instructions(compiled), time_now))
        if way.bytes < bytes_now:
            found.setdefault(way.bytes, way)  # the same bytes with more settings are no other way
    ways = [way for way in found.values() if not any(_is_in_vain(way, other) for other in found.values())]
    return tuple(sorted(ways, key=lambda way: (len(way.settings), way.slower or 1, way.bytes)))


def _is_in_vain(way: Way, other: Way) -> bool:
    """Whether a way has all settings of another one, and more, and needs no less."""
    return other.settings.items() < way.settings.items() and other.bytes <= way.bytes


def fitting(ways: Sequence[Way], limit_bytes: int, place: str) -> list[str]:
    """The ways that fit, as parts of a sentence; if there are none, the one that comes closest."""
    fits = [way for way in ways if way.bytes <= limit_bytes]
    if fits:
        return [way.priced(place) for way in fits]
    closest = min(ways, key=lambda way: way.bytes, default=None)
    return [f"{closest.priced(place)}, which comes closest of all settings"] if closest else []


def _choices(
    model: Path | ModelFile, options: Options, now: Compiled, by_rows: bool
) -> Iterator[tuple[Mapping[str, str], Options]]:
    """Settings and the options that have them, those with fewer settings first."""
    single: list[tuple[Mapping[str, str], Options]] = [
        ({"optimize": goal}, replace(options, optimize=goal)) for goal in GOALS if goal != options.optimize
    ]
    smallest = replace(options, optimize="ram")
    both: list[tuple[Mapping[str, str], Options]] = []
    if by_rows and not (options.io.caller or options.io.rows or options.frontend):
        rows = replace(options.io, rows=True)
        single.append(({"io": str(rows)}, replace(options, io=rows)))
        both.append(({"optimize": "ram", "io": str(rows)}, replace(smallest, io=rows)))
    if not options.io.int8:
        bytes_ = replace(options.io, int8=True)
        single.append(({"io": str(bytes_)}, replace(options, io=bytes_)))
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        request = _int8(model, options, now, Path(folder))
        if request:
            single.append(({"quantize": DATA}, replace(options, quantize=request)))
            both.append(({"quantize": DATA, "optimize": "ram"}, replace(smallest, quantize=request)))
        yield from single
        yield from both


def _int8(model: Path | ModelFile, options: Options, now: Compiled, folder: Path) -> Request | None:
    """A calibration with generated samples, for a float model that could be int8."""
    in_float = any(chosen.in_float and chosen.layer.op.macs(chosen.layer) for chosen in now.selected)
    path = model if isinstance(model, Path) else model.path
    if options.quantize or not in_float or path.suffix.lower() != ".onnx":
        return None
    graph = read_graph(model, options.shapes, options.bounds)
    if any(graph.tensors[name].dtype is not DType.FLOAT32 for name in graph.inputs):
        return None
    samples = generated(graph, SAMPLES)
    file = folder / "samples.npz"
    arrays: dict[str, Any] = {
        name: np.concatenate([sample[name] for sample in samples]) for name in graph.inputs
    }
    np.savez(file, **arrays)
    return Request(file, method="minmax")


def _instructions(compiled: Compiled) -> int | None:
    from tinyml.cost.estimate import estimate_for

    found = estimate_for(compiled)
    return found.instructions if found else None


def _times(instructions: int | None, now: int | None) -> float | None:
    return instructions / now if instructions and now else None
