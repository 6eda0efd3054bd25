# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``evaluate:`` in tinyml.yaml: a test set whose rows become part of the model's Twister test."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

KEYS = {
    "data": "test set: .npz, .npy, .csv, or a folder of images or WAV files, relative to tinyml.yaml",
    "labels": "a file with the right classes, or the name of an array in the .npz (default: `labels`)",
    "min_accuracy": "share of right decisions that the test requires: 0.95, or 95%",
    "rows": "samples in the test image, evenly spread over the data (default: 64, or what fits 64 KB)",
    "range": "what the smallest and the largest pixel or sample become: 0:1",
    "mean": "subtracted after the range, per channel",
    "std": "divided by after the mean, per channel",
    "output": "the output that decides (default: the first)",
}
"""Every key below ``evaluate:``. A test compares the documentation with this table."""

PATHS = ("data", "labels")


@dataclass(frozen=True)
class Evaluate:
    """The settings, as given and as read."""

    data: str
    min_accuracy: float
    labels: str = ""
    rows: int | None = None
    output: str = ""
    scaling: Mapping[str, str] = field(default_factory=dict)  # range, mean, std
    given: Mapping[str, Any] = field(default_factory=dict)


def from_yaml(value: object, where: str) -> Evaluate | None:
    """Check the settings; ``where`` names the model in messages."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ConfigError(
            f"{where}: 'evaluate' must be a mapping", "evaluate: {data: test.npz, min_accuracy: 0.95}"
        )
    for key in value:
        if key not in KEYS:
            close = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(KEYS)}"
            raise ConfigError(f"{where}: evaluate has no key {str(key)!r}", hint)
    for key in ("data", "min_accuracy"):
        if key not in value:
            raise ConfigError(f"{where}: evaluate needs the key {key!r}", KEYS[key])
    for key in ("data", "labels", "output"):
        if key in value and (not isinstance(value[key], str) or not value[key]):
            raise ConfigError(f"{where}: evaluate: {key!r} must be a string", KEYS[key])
    rows = value.get("rows")
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
        raise ConfigError(f"{where}: evaluate: {rows!r} is not a number of rows", KEYS["rows"])
    return Evaluate(
        value["data"],
        accuracy_of(value["min_accuracy"], f"{where}: evaluate: "),
        value.get("labels", ""),
        rows,
        value.get("output", ""),
        {key: _words(value[key]) for key in ("range", "mean", "std") if key in value},
        dict(value),
    )


def accuracy_of(value: object, where: str = "") -> float:
    """A share of right decisions: ``0.95``, ``95%`` or ``95``."""
    found = re.fullmatch(r"(\d*\.?\d+|\d+\.)\s*(%?)", str(value).strip())
    number = float(found[1]) if found else -1.0
    share = number / 100 if found and (found[2] or number > 1) else number
    if not 0 < share <= 1:
        raise ConfigError(f"{where}{str(value)!r} is not an accuracy", "0.95, or 95%")
    return share


def _words(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
