"""Calibration data as text: one sample per line, a header if there is one, a column of labels if named."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tinyml.errors import ConfigError
from tinyml.ir import Array

LABELS = ("label", "labels", "class", "target")
"""Headers of a column that holds the right answer and is no input."""


def read(path: Path, elements: int) -> tuple[Array, Array | None]:
    """Rows of ``elements`` numbers, and the labels where a header names them."""
    header, rows = _table(path)
    label = next((i for i, name in enumerate(header) if name.strip().lower() in LABELS), None)
    labels = None if label is None else rows[:, label]
    if label is not None:
        rows = np.delete(rows, label, axis=1)
    if rows.shape[1] != elements:
        raise ConfigError(
            f"{path} has {rows.shape[1]} numbers in a line; the model takes {elements}",
            f"one sample per line; a column of labels has the header {LABELS[0]!r}",
        )
    return rows, labels


def column(path: Path) -> Array:
    """One number per line."""
    _, rows = _table(path)
    if rows.shape[1] != 1:
        raise ConfigError(f"{path} has {rows.shape[1]} columns", "one number per line: the class")
    return rows[:, 0]


def _table(path: Path) -> tuple[list[str], Array]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            sample = stream.read(4096)
            stream.seek(0)
            lines = [line for line in csv.reader(stream, delimiter=_delimiter(sample)) if any(line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    header: list[str] = []
    if lines and not _numeric(lines[0]):
        header = lines.pop(0)
    if not lines:
        raise ConfigError(f"{path} has no lines with numbers")
    for number, line in enumerate(lines, 2 if header else 1):
        if len(line) != len(lines[0]) or not _numeric(line):
            raise ConfigError(f"{path}: line {number} is not {len(lines[0])} numbers: {','.join(line)[:60]}")
    return header, np.asarray([[float(cell) for cell in line] for line in lines], np.float32)


def _delimiter(sample: str) -> str:
    first = sample.splitlines()[0] if sample else ""
    return max((",", ";", "\t"), key=first.count)


def _numeric(line: list[str]) -> bool:
    try:
        for cell in line:
            float(cell)
    except ValueError:
        return False
    return True
