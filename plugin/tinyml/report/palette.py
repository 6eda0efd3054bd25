# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One colour per kind of operator, the same in every report."""

from __future__ import annotations

import zlib

FREQUENT = {
    "conv": (211, 72, 62),
    "depthwise_conv": (186, 60, 50),
    "dense": (262, 62, 70),
    "mat_mul": (283, 45, 66),
    "add": (140, 45, 55),
    "sub": (120, 35, 60),
    "mul": (96, 42, 54),
    "concat": (50, 70, 55),
    "reshape": (220, 8, 68),
    "transpose": (30, 30, 66),
    "pad": (35, 20, 58),
    "slice": (20, 45, 68),
    "average_pool": (24, 82, 62),
    "max_pool": (12, 76, 66),
    "reduce_mean": (38, 85, 58),
    "softmax": (332, 65, 68),
    "quantize": (240, 25, 74),
    "dequantize": (250, 18, 66),
    "lstm": (300, 50, 64),
    "gru": (312, 55, 70),
    "banded": (197, 90, 56),
}
"""Hue, saturation and lightness of common operators: kinds that often meet are far apart."""


def color(label: str) -> str:
    """Light enough for dark text on it, dark enough to be seen on a white page."""
    if label in FREQUENT:
        hue, saturation, lightness = FREQUENT[label]
    else:
        number = zlib.crc32(label.encode())
        hue, saturation, lightness = number % 360, 45 + number // 360 % 35, 56 + number // 12_600 % 14
    return f"hsl({hue} {saturation}% {lightness}%)"
