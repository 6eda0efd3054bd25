# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the demo shows: the classified images, and memory use compared with the board's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHADES = " .:-=+*#%@"
FULL = 16  # the darkest pixel
ACROSS = 6  # images per row


@dataclass(frozen=True)
class Image:
    """One of the sample's held-back images: 64 pixels from 0 to 16, and the digit that it shows."""

    pixels: tuple[int, ...]
    label: int

    def rows(self) -> list[str]:
        shades = [SHADES[value * (len(SHADES) - 1) // FULL] * 2 for value in self.pixels]
        return ["".join(shades[start : start + 8]) for start in range(0, 64, 8)]


def read_images(header: Path) -> list[Image]:
    """The images in the header that is compiled into the application."""
    found = re.findall(r"\.pixels = \{([\d,\s]+)\},\s*\.label = (\d+)", header.read_text())
    return [Image(tuple(int(value) for value in text.split(",")[:64]), int(label)) for text, label in found]


def gallery(images: Sequence[Image], predictions: Sequence[int]) -> str:
    """The first images side by side, with the model's answer below each."""
    chosen = list(zip(images, predictions, strict=False))[:ACROSS]
    lines = ["  ".join(parts) for parts in zip(*(image.rows() for image, _ in chosen), strict=True)]
    captions = [f"{_caption(image.label, prediction):<16}" for image, prediction in chosen]
    return "\n".join([*lines, "  ".join(captions)])


def _caption(label: int, prediction: int) -> str:
    return f"-> {prediction}" + ("" if label == prediction else f" (it is a {label})")


@dataclass(frozen=True)
class Figure:
    """Bytes used of some memory; ``budget`` is its size, or 0 if there is nothing to compare with."""

    what: str
    used: int
    budget: int = 0

    def line(self) -> str:
        text = f"  {self.what:<28} {self.used:>9,} bytes"
        return (
            f"{text}  of {self.budget:>9,}  ({100 * self.used / self.budget:.1f} %)" if self.budget else text
        )
