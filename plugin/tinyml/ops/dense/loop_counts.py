# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of dense layers with int8 run: runtime/dense."""

from __future__ import annotations

from tinyml.ir import Layer
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.pairs import last_filters
from tinyml.ops.weighted.walked import Outputs, groups_of, outputs_of, times, together
from tinyml.ops.weighted.weighted import Weighted


def matrix_of(layer: Layer[Weighted]) -> tuple[int, int, int]:
    """Rows, inputs and outputs."""
    outputs, inputs = layer.input(1).shape
    return layer.output.elements // outputs, inputs, outputs


def stream(layer: Layer[Weighted], with_offset: bool = False) -> Work:
    """dense_stream_s8.h: filters in fours, the last ones one by one. ``with_offset``: WEIGHT_OFFSET."""
    rows, inputs, outputs = matrix_of(layer)
    words, rest = divmod(inputs, 4)
    fours, ones = divmod(outputs, 4)
    made = outputs_of(layer)
    summed = inputs if made.weight_zero or with_offset else 0
    row = {
        "rows": 1,
        "bytes of the last word": rest,
        "elements summed": summed,
        "vectors summed": summed // 16,
        "fours": fours,
        "words of fours": fours * words,
        "fours of words": fours * (words > 0),
        "fours of the last word": fours * (rest > 0),
        "filters": ones,
        "words of filters": ones * words,
        "filters of the last word": ones * (rest > 0),
    }
    return together({"calls": 1}, times(rows, row), made.of(rows))


def pairs(layer: Layer[Weighted]) -> Work:
    """dense_pairs_s8.c: filters in fours, the last one or two as a pair."""
    rows, inputs, outputs = matrix_of(layer)
    made = outputs_of(layer)
    return together({"calls": 1}, times(rows, _pairs_of_row(inputs, outputs, made)))


def _pairs_of_row(inputs: int, outputs: int, made: Outputs) -> Work:
    words, rest = divmod(inputs, 4)
    last = outputs % 4
    fours, two = outputs // 4 + (last == 3), last in (1, 2)
    return together(
        {
            "rows": 1,
            "bytes of the last word": rest,
            "fours": fours,
            "words of fours": fours * words,
            "rounds of fours": fours * groups_of(words, 4),
            "fours of the last word": fours * (rest > 0),
            "pairs": float(two),
            "words of pairs": two * (words + (rest > 0)),
            "outputs of the last filters": last,
        },
        made.of(1, [False] * outputs),
    )


def sixes(layer: Layer[Weighted]) -> Work:
    """dense_sixes_s8.c: filters in sixes, the last ones as in ``pairs``."""
    _, inputs, outputs = matrix_of(layer)
    made = outputs_of(layer)
    last = last_filters(outputs)
    count = (outputs - last) // 6
    words = inputs // 4
    rest = _pairs_of_row(inputs, last, made) if last else {}
    return together(
        {
            "calls": 1,
            "sixes": count,
            "words of sixes": count * words,
            "rounds of sixes": count * groups_of(words, 4),
            "outputs of sixes within limits": 6 * count * made.narrow,
            "outputs of sixes rounded once": 6 * count * made.once,
        },
        rest,
    )


def nibbles(layer: Layer[Weighted]) -> Work:
    """dense_nibbles_s8.c: filters in fours."""
    rows, inputs, outputs = matrix_of(layer)
    words, rest = divmod(inputs, 4)
    fours = groups_of(outputs, 4)
    row = {
        "rows": 1,
        "elements summed": inputs,
        "vectors summed": inputs // 16,
        "bytes of the last word": rest,
        "fours": fours,
        "words of fours": fours * words,
        "fours of the last word": fours * (rest > 0),
    }
    return together({"calls": 1}, times(rows, row), outputs_of(layer).of(rows))


SHORT_ROW = 64
"""Elements of a row that dense_nibbles_dsp_s8.c makes int16 before its loop."""
EIGHT = 8


def nibbles_with_dsp(layer: Layer[Weighted], short_row: int = SHORT_ROW) -> Work:
    """dense_nibbles_dsp_s8.c: filters in eights, the last ones, if they are fewer, beside the output."""
    rows, inputs, outputs = matrix_of(layer)
    words, rest = divmod(inputs, 4)
    made = outputs_of(layer)
    eights, last = groups_of(outputs, EIGHT), outputs % EIGHT
    short = inputs <= short_row
    all_words = words + (rest > 0)
    large = [any(made.large[begin : begin + 4]) for begin in range(0, outputs, 4)]
    kind = "short row" if short else "row"
    row = {
        f"{kind}s": 1,
        "bytes of the last word": rest,
        f"words summed of a {kind}": all_words if short else words,
        f"eights of a {kind}": eights,
        f"words of a {kind}": eights * all_words,
        f"rounds of a {kind}": eights * groups_of(all_words, 8 if short else 6),
        f"eights of the last word of a {kind}": eights * (rest > 0),
        "calls of eights": (outputs >= EIGHT) + (last > 0),
        "last outputs": last,
        "outputs within limits": (outputs - last) * made.narrow,
        "eights rounded once": eights * made.once,
        "fours in C": sum(large),
        "large outputs": sum(made.large),
        "large outputs rounded once": sum(made.large) * made.once,
    }
    return together({"calls": 1}, times(rows, row))
