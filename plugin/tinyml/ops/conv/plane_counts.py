# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of depthwise convolutions run that copy a channel into a plane (plane_s8.h)."""

from __future__ import annotations

from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Outputs, Windows, groups_of, times, together

NIBBLES_AT_ONCE = 8


def filled(windows: Windows) -> Work:
    """tinyml_plane() for every image, tinyml_plane_fill() for every channel of the input."""
    rows, cols = windows.rows, windows.cols
    fours, rest = divmod(cols.copied, 4)
    lines = windows.in_c * rows.copied
    copied = {
        "images": 1,
        "bytes of planes": rows.reach * cols.reach,
        "planes": windows.in_c,
        "lines copied": lines,
        "fours copied": lines * fours,
        "elements copied": lines * rest,
    }
    return times(windows.batches, copied)


def unpacked(windows: Windows) -> Work:
    """tinyml_unpack_nibbles() for every channel."""
    eights, rest = divmod(windows.taps, NIBBLES_AT_ONCE)
    return times(
        windows.batches * windows.out_c,
        {"taps unpacked": 1, "eights unpacked": eights, "twos unpacked": groups_of(rest, 2)},
    )


def _pairs(windows: Windows) -> tuple[int, int, int]:
    """Channels, their lines of outputs, and pairs of outputs in these."""
    channels = windows.batches * windows.out_c
    lines = channels * windows.rows.out
    return channels, lines, lines * groups_of(windows.cols.out, 2)


def in_c(windows: Windows, way: str, made: Outputs, packed: bool = False) -> Work:
    """depthwise_conv_s8.c."""
    channels, lines, pairs = _pairs(windows)
    rows = windows.rows.kernel
    walked = {
        "channels": channels,
        f"lines {way}": lines,
        f"pairs {way}": pairs,
        f"odd outputs {way}": lines * (windows.cols.out % 2),
        "rows of taps": pairs * rows * (way == "any"),
        "taps": pairs * windows.taps * (way == "any"),
    }
    outputs = made.of(2 * pairs / windows.out_c)
    return together(filled(windows), walked, outputs, unpacked(windows) if packed else {})


def with_dsp(windows: Windows, way: str, made: Outputs, packed: bool = False) -> Work:
    """depthwise_conv_dsp_s8.c. Weights of four bits have channels of large outputs of their own."""
    channels, lines, pairs = _pairs(windows)
    rows, cols = windows.rows, windows.cols
    large = sum(made.large) / windows.out_c if packed else 0.0
    usual = 1 - large
    words = groups_of((cols.kernel - 1) * cols.dilation + 1, 4)
    spread = not way.startswith("3x3")
    fast = spread and cols.dilation == 1 and not (made.weight_zero and not packed)
    loaded = channels * usual
    walked = {
        "channels": channels,
        f"walks {way}": loaded,
        "rows spread": loaded * rows.kernel * spread,
        "words spread": loaded * rows.kernel * words * fast,
        "bytes cleared": loaded * rows.kernel * words * 8 * (spread and not fast),
        "taps spread": loaded * windows.taps * (spread and not fast),
        f"lines {way}": lines * usual,
        f"pairs {way}": pairs * usual,
        f"odd outputs {way}": lines * (cols.out % 2) * usual,
        f"rows of taps {way}": pairs * rows.kernel * usual * spread,
        "words of taps": pairs * rows.kernel * words * usual * (way == "any"),
        f"outputs within limits {way}": 2 * pairs * usual * made.narrow,
        f"outputs rounded once {way}": 2 * pairs * usual * made.once,
    }
    return together(
        filled(windows),
        walked,
        unpacked(windows) if packed else {},
        _large(windows, large, made) if large else {},
    )


def _large(windows: Windows, share: float, made: Outputs) -> Work:
    """depthwise_conv_dsp_plane_large() for this share of the channels."""
    channels, lines, pairs = _pairs(windows)
    rows, cols = windows.rows, windows.cols
    outputs = channels * windows.positions
    nine = (rows.kernel, cols.kernel, rows.dilation, cols.dilation) == (3, 3, 1, 1)
    found = {
        "large channels": channels,
        "large lines": lines * nine,
        "large pairs": pairs * nine,
        "large positions": outputs * (not nine),
        "large rows of taps": outputs * rows.kernel * (not nine),
        "large taps": outputs * windows.taps * (not nine),
        "large outputs within limits": (2 * pairs if nine else outputs) * made.narrow,
        "large outputs rounded once": (2 * pairs if nine else outputs) * made.once,
    }
    return times(share, found)
