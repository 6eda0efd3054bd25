# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a detector found, drawn on the picture that it was given."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

import numpy as np

from tinyml.base.png import png
from tinyml.datasets.arrays import real
from tinyml.datasets.detections import Detection
from tinyml.ir import Array, Tensor

WIDTH = 480
"""Of the drawing, in pixels of the page."""

RELATIVE = 2.0
"""Boxes whose numbers are all below this one are shares of the picture, not pixels."""


def as_picture(values: Array, tensor: Tensor) -> Array | None:
    """Rows and columns of 256 greys or colours; None if the input is no picture."""
    planes = real(values, tensor)
    if planes.ndim == 4 and len(planes) == 1:
        planes = planes[0]
    if planes.ndim == 3 and planes.shape[0] in (1, 3):  # channels first
        planes = np.moveaxis(planes, 0, -1)
    if planes.ndim == 2:
        planes = planes[..., np.newaxis]
    if planes.ndim != 3 or planes.shape[-1] not in (1, 3) or min(planes.shape[:2]) < 2:
        return None
    low, high = float(planes.min()), float(planes.max())
    if low >= 0 and 1 < high <= 255:
        low, high = 0.0, 255.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= -1 and high <= 1:
        low, high = -1.0, 1.0
    scaled = (planes - low) / (high - low if high > low else 1.0) * 255
    return np.rint(scaled).astype(np.uint8)


def boxes_svg(picture: Array, found: Sequence[Detection], labels: Sequence[str]) -> str:
    """The picture with an outline and a name for each box."""
    rows, columns = picture.shape[:2]
    sides = [abs(side) for box in found for side in (box.left, box.top, box.right, box.bottom)]
    across, down = (columns, rows) if sides and max(sides) < RELATIVE else (1, 1)
    content = base64.b64encode(png(picture)).decode()
    height = round(WIDTH * rows / columns)
    parts = [
        f'<svg class="boxes" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_aria(found)}">',
        f'<image href="data:image/png;base64,{content}" width="{WIDTH}" height="{height}" '
        'style="image-rendering: pixelated"/>',
    ]
    factor = WIDTH / columns
    for box in found:
        left, top = box.left * across * factor, box.top * down * factor
        width = (box.right - box.left) * across * factor
        high = (box.bottom - box.top) * down * factor
        score = f" {100 * box.score:.0f} %" if box.score >= 0 else ""
        parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{high:.1f}"/>')
        place = max(top - 5, 14)
        parts.append(f'<text x="{max(left, 2):.1f}" y="{place:.1f}">{escape(box.name(labels))}{score}</text>')
    return "\n".join([*parts, "</svg>"])


def _aria(found: Sequence[Detection]) -> str:
    return f"The input as a picture, with {len(found)} {'box' if len(found) == 1 else 'boxes'}"
