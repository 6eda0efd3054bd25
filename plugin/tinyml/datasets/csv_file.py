# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration data as text: one sample per line, a header if there is one, a column of labels if named."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.ir import Array

LABELS = ("label", "labels", "class", "target")
"""Headers of a column that holds the label, not an input."""

CLASSES = "class numbers 0, 1, 2 ... in the order of the model's outputs"


def read(path: Path, elements: int) -> tuple[Array, Array | None]:
    """Rows of ``elements`` numbers, and the labels where a header names them."""
    header, lines = _table(path)
    label = next((i for i, name in enumerate(header) if name.strip().lower() in LABELS), None)
    labels = None
    if label is not None:
        cells = [line[label : label + 1] or [""] for line in lines]
        labels = _labels(path, cells, header)
        lines = [line[:label] + line[label + 1 :] for line in lines]
    rows = _numbers(path, lines, header, f"{elements} numbers in each line, and nothing else")
    if rows.shape[1] != elements:
        raise ConfigError(
            f"{path} has {rows.shape[1]} numbers in a line; the model takes {elements}",
            f"one sample per line; a column of labels has the header {LABELS[0]!r}",
        )
    return rows, labels


def column(path: Path) -> Array:
    """One label per line."""
    header, lines = _table(path)
    if len(lines[0]) != 1:
        raise ConfigError(f"{path} has {len(lines[0])} columns", "one label per line")
    return _labels(path, lines, header)


def _labels(path: Path, cells: list[list[str]], header: list[str]) -> Array:
    """Numbers, or names if the first label is one."""
    if cells[0][0].strip() and not _is_number(cells[0][0]):
        return np.asarray([line[0].strip() for line in cells])
    return _numbers(path, cells, header, CLASSES)[:, 0]


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header, or nothing, and the lines. A header has no number in it, or names the labels."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            sample = stream.read(4096)
            stream.seek(0)
            delimiter = _delimiter(sample)
            lines = [line for line in csv.reader(stream, delimiter=delimiter) if any(line)]
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(
            f"{path} is not text in UTF-8", "one sample per line, numbers with commas"
        ) from None
    if delimiter == ";":  # then a comma is the decimal separator, as in much of Europe
        lines = [[cell.replace(",", ".") for cell in line] for line in lines]
    first = lines[0] if lines else []
    named = any(cell.strip().lower() in LABELS for cell in first)
    header = lines.pop(0) if first and (named or not any(map(_is_number, first))) else []
    if not lines:
        raise ConfigError(f"{path} has no lines with numbers", "one sample per line")
    return header, lines


def _numbers(path: Path, lines: list[list[str]], header: list[str], hint: str) -> Array:
    for number, line in enumerate(lines, 2 if header else 1):
        if len(line) != len(lines[0]) or not all(map(_is_number, line)):
            found = ",".join(line)[:60]
            raise ConfigError(f"{path}: line {number} is not {len(lines[0])} numbers: {found}", hint)
    return np.asarray([[float(cell) for cell in line] for line in lines], np.float32)


def _delimiter(sample: str) -> str:
    first = sample.splitlines()[0] if sample else ""
    return next((mark for mark in (";", "\t") if mark in first), ",")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
