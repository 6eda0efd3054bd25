# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The user's settings for quantising a model. Imports quickly: manifests use it too."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import TARGETS

if TYPE_CHECKING:
    from tinyml.features.settings import FrontEnd

METHODS = ("auto", "minmax", "entropy", "percentile")
"""How the ranges of activations are determined; ``auto``: the method whose outputs are closest to float."""

IO = ("float", "int8")
"""The types of inputs and outputs afterwards."""

LEAVES = ("int16", "int8")
"""The types of the weights in the leaves of trees."""


WEIGHTS = ("int8", "mixed", "int4", "float16")
"""The types of the weights of convolutions and dense layers; ``mixed``: four bits where little is lost.

``float16``: the model stays float, and only its weights become smaller.
"""

NO_DATA = Path(os.devnull)
"""Instead of calibration data, where nothing is calibrated and no loss is to be measured."""


@dataclass(frozen=True)
class Scaling:
    """How stored numbers (pixels, samples) are converted to the numbers used in training."""

    low: float | None = None  # with ``high``: the real values of the smallest and the largest pixel
    high: float | None = None
    mean: tuple[float, ...] = ()  # per channel, subtracted after the range
    std: tuple[float, ...] = ()  # per channel, divided by last

    @property
    def given(self) -> bool:
        return self.low is not None or bool(self.mean) or bool(self.std)


@dataclass(frozen=True)
class Goal:
    """The allowed loss: points of accuracy, or the required signal-to-noise ratio of the outputs."""

    points: float | None = None
    decibels: float | None = None

    def __str__(self) -> str:
        return f"{self.points:g} points" if self.points is not None else f"{self.decibels:g} dB"


@dataclass(frozen=True)
class Request:
    """Everything except the float model and its input shapes that determines the int8 model."""

    calibration: Path
    method: str = "auto"
    io: str = "float"
    keep_float: tuple[str, ...] = ()
    int16: tuple[str, ...] = ()
    labels: Path | None = None
    auto: Goal | None = None
    scaling: Scaling = Scaling()
    samples: int = 512  # maximum number of samples to use, evenly spread
    leaves: str = "int16"
    frontend: FrontEnd | None = None  # through which recordings become inputs
    weights: str = "int8"
    max_loss: Goal | None = None  # of ``mixed`` weights
    test: Path | None = None  # data that was not used to calibrate, for the report
    core: str = "cortex-m4"  # whose instructions ``auto`` compares

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"unknown calibration method {self.method!r}", f"one of: {', '.join(METHODS)}")
        if self.io not in IO:
            raise ConfigError(f"the interface cannot be {self.io!r}", f"one of: {', '.join(IO)}")
        if self.leaves not in LEAVES:
            raise ConfigError(f"leaves of trees cannot be {self.leaves!r}", f"one of: {', '.join(LEAVES)}")
        if self.weights not in WEIGHTS:
            raise ConfigError(f"weights cannot be {self.weights!r}", f"one of: {', '.join(WEIGHTS)}")
        if self.max_loss is not None and self.weights != "mixed":
            raise ConfigError(
                f"a maximum loss chooses layers for mixed weights, not for {self.weights}", "--weights mixed"
            )
        self._check_float16()
        self._check_data()
        if self.core not in TARGETS or self.core == "host":
            cores = ", ".join(name for name in TARGETS if name != "host")
            raise ConfigError(f"unknown core {self.core!r}", f"one of: {cores}")
        if self.samples < 1:
            raise ConfigError(f"{self.samples} calibration samples are too few", "1 or more; 100 is typical")

    def _check_float16(self) -> None:
        given = {"int16": self.int16, "auto": self.auto, "io int8": self.io == "int8"}
        used = [name for name, value in given.items() if value]
        if self.weights == "float16" and used:
            raise ConfigError(
                f"a model with float16 weights computes in float, so {used[0]} has no meaning",
                f"weights other than float16, or no {used[0].partition(' ')[0]}",
            )

    def _check_data(self) -> None:
        if self.measures:
            return
        if self.weights != "float16":
            raise ConfigError(f"{self.weights} weights require calibration data", KEYS["calibration"])
        given = {"labels": self.labels, "test": self.test}
        for name in (name for name, value in given.items() if value):
            raise ConfigError(f"without calibration data, {name} has no meaning", "calibration data with it")

    @property
    def measures(self) -> bool:
        """Whether there is data to measure the loss on."""
        return self.calibration != NO_DATA

    @property
    def files(self) -> list[Path]:
        """The files that the result depends on; folders are listed file by file."""
        found = []
        given = (self.calibration if self.measures else None, self.labels, self.test)
        for path in filter(None, given):
            found += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        return found

    def check_files(self) -> None:
        """Raise ConfigError for missing files."""
        if self.measures and not self.calibration.exists():
            raise ConfigError(f"there is no calibration data {self.calibration}", KEYS["calibration"])
        if self.labels is not None and not self.labels.is_file():
            raise ConfigError(f"there is no label file {self.labels}", KEYS["labels"])
        if self.test is not None and not self.test.exists():
            raise ConfigError(f"there is no test data {self.test}", KEYS["test"])

    def describe(self) -> str:
        """The choices, without paths: for the provenance comment and the key of the cache."""
        half = self.weights == "float16"
        compared = f", compared on {self.calibration.name}" if self.measures else ""
        parts = [f"float16 weights{compared}"] if half else []
        parts += [] if half else [f"int8 calibrated on {self.calibration.name}"]
        parts += [f"method {self.method}"] if self.method != "auto" else []
        parts += [f"io {self.io}"] if self.io != "float" else []
        parts += [f"keep float {name}" for name in self.keep_float]
        parts += [f"int16 {name}" for name in self.int16]
        parts += [f"lose at most {self.auto}"] if self.auto and self.auto.points is not None else []
        parts += [f"at least {self.auto}"] if self.auto and self.auto.decibels is not None else []
        if self.scaling.low is not None:
            parts.append(f"range {self.scaling.low:g}:{self.scaling.high:g}")
        parts += [f"mean {_numbers(self.scaling.mean)}"] if self.scaling.mean else []
        parts += [f"std {_numbers(self.scaling.std)}"] if self.scaling.std else []
        parts += [f"{self.samples} samples"] if self.samples != Request.samples else []
        parts += [f"{self.leaves} leaves"] if self.leaves != Request.leaves else []
        parts += [f"{self.weights} weights"] if self.weights not in (Request.weights, "float16") else []
        parts += [f"lose at most {self.max_loss} by them"] if self.max_loss else []
        parts += [f"costs on a {self.core}"] if self.auto and self.core != Request.core else []
        parts += [f"tested on {self.test.name}"] if self.test else []
        parts += [self.frontend.describe()] if self.frontend else []
        return ", ".join(parts)


def _numbers(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:g}" for value in values)


KEYS = {
    "calibration": "real inputs: .npz, .npy, .csv, or a folder of images or WAV files",
    "method": f"how ranges are found: {', '.join(METHODS)}",
    "io": f"inputs and outputs afterwards: {' or '.join(IO)}",
    "keep_float": "layers to leave in float",
    "int16": "layers to give int16 activations",
    "labels": "the right class of each calibration sample: .npy, .npz or .csv",
    "auto": "int16 or float in the cheapest way that loses at most this: 0.5 (points) or 30dB",
    "core": "the core whose instructions `auto` compares: cortex-m4, cortex-m3, ...",
    "range": "what the smallest and the largest pixel or sample become: 0:1",
    "mean": "subtracted after the range, per channel",
    "std": "divided by after the mean, per channel",
    "samples": "maximum number of calibration samples to use",
    "leaves": f"weights in the leaves of trees: {' or '.join(LEAVES)}",
    "weights": f"weights of convolutions and dense layers: {', '.join(WEIGHTS)}",
    "max_loss": "what `mixed` weights may lose more than int8: 1 (points of accuracy), or 30dB to keep",
    "test": "data that is not used to calibrate, on which the report compares int8, mixed and int4",
}
"""Every setting, as tinyml.yaml, CMake and platformio.ini write it. A test compares the documentation."""

PATHS = ("calibration", "labels", "test")


def choices() -> dict[str, tuple[str, ...]]:
    """The words that some settings can be."""
    cores = tuple(name for name in TARGETS if name != "host")
    return {"method": METHODS, "io": IO, "leaves": LEAVES, "weights": WEIGHTS, "core": cores}


LISTS = ("keep_float", "int16")


def settings(value: object, where: str) -> dict[str, str]:
    """A mapping (or just the calibration data) as strings by key; lists are joined by commas."""
    if isinstance(value, str):
        value = {"calibration": value}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: 'quantize' must name calibration data", "{calibration: calib.npz}")
    found = {}
    for key, item in value.items():
        if key not in KEYS:
            close = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(KEYS)}"
            raise ConfigError(f"{where}: quantize has no key {str(key)!r}", hint)
        if item is not None:  # `method:` without a value
            found[str(key)] = ",".join(map(str, item)) if isinstance(item, list) else str(item)
    if "calibration" not in found and found.get("weights") != "float16":
        raise ConfigError(f"{where}: quantize lacks 'calibration'", KEYS["calibration"])
    return found


def parse_items(items: Iterable[str], where: str) -> dict[str, str]:
    """``data.npz`` and ``key=value``, as command lines and ini files write them."""
    found: dict[str, str] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or (key.strip() not in KEYS and not re.fullmatch(r"[a-z_]+", key.strip())):
            key, text = "calibration", item
        key, text = key.strip(), text.strip()
        found[key] = f"{found[key]},{text}" if key in LISTS and key in found else text
    return settings(found, where)


def from_items(items: Iterable[str], where: str, folder: Path) -> Request | None:
    """The request given by command line items; None if there are none."""
    items = list(items)
    return from_settings(parse_items(items, where), folder) if items else None


def from_settings(given: Mapping[str, str], folder: Path) -> Request:
    """The request given by settings whose paths are relative to ``folder``."""
    low, high = parse_range(given["range"]) if "range" in given else (None, None)
    samples = given.get("samples", str(Request.samples))
    if not samples.isdecimal():
        raise ConfigError(f"samples: {samples!r} is not a number", KEYS["samples"])
    return Request(
        folder / given["calibration"] if "calibration" in given else NO_DATA,
        given.get("method", Request.method),
        given.get("io", Request.io),
        _names(given, "keep_float"),
        _names(given, "int16"),
        folder / given["labels"] if "labels" in given else None,
        parse_goal(given["auto"]) if "auto" in given else None,
        Scaling(
            low,
            high,
            parse_numbers(given["mean"], "mean") if "mean" in given else (),
            parse_numbers(given["std"], "std") if "std" in given else (),
        ),
        int(samples),
        given.get("leaves", Request.leaves),
        weights=given.get("weights", Request.weights),
        max_loss=parse_goal(given["max_loss"]) if "max_loss" in given else None,
        test=folder / given["test"] if "test" in given else None,
        core=given.get("core", Request.core),
    )


def _names(given: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name for name in given.get(key, "").split(",") if name)


def parse_goal(text: str) -> Goal:
    """``0.5`` (points of accuracy) or ``30dB`` (signal-to-noise ratio of the outputs)."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(dB|db|points?|%)?", text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is not a loss", "0.5 (points of accuracy), or 30dB")
    value = float(match[1])
    return Goal(decibels=value) if (match[2] or "").lower() == "db" else Goal(points=value)


def parse_range(text: str) -> tuple[float, float]:
    """``0:1`` or ``-1:1``."""
    low, colon, high = text.partition(":")
    try:
        limits = float(low), float(high)
    except ValueError:
        limits = (0.0, 0.0)
    if not colon or not -math.inf < limits[0] < limits[1] < math.inf:
        raise ConfigError(f"{text!r} is not a range", "0:1, -1:1 or 0:255")
    return limits


def parse_numbers(text: str, what: str) -> tuple[float, ...]:
    """``0.485,0.456,0.406``."""
    try:
        values = tuple(float(part) for part in text.split(","))
        if not all(map(math.isfinite, values)):
            raise ValueError
    except ValueError:
        raise ConfigError(f"{what}: {text!r} is not a list of numbers", "0.485,0.456,0.406") from None
    if what == "std" and not all(value > 0 for value in values):
        raise ConfigError(f"std: {text!r} must be greater than 0", "the deviation used in training")
    return values
