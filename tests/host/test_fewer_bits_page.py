# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The table of the samples with fewer bits: what it promises, and how it is written."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tools.fewer_bits import PAGE, TASKS, WAYS, Row, picture, replaced, stated, table
from tools.figures import FOLDER as FIGURES

ROWS = stated(PAGE.read_text(encoding="utf-8"))


def test_every_row_is_read_back() -> None:
    assert {row.sample for row in ROWS} <= {*TASKS}
    assert [row.way for row in ROWS] == [*WAYS] * (len(ROWS) // 3)
    page = PAGE.read_text(encoding="utf-8")
    assert replaced(page, table(ROWS)) == page


@pytest.mark.parametrize("sample", dict.fromkeys(row.sample for row in ROWS))
def test_mixed_is_smaller_and_as_good(sample: str) -> None:
    """At most one point below int8, with at least 30 % fewer bytes of weights."""
    rows = {row.way: row for row in ROWS if row.sample == sample}
    assert rows["mixed"].right >= rows["int8"].right - 0.01
    assert rows["mixed"].weight_bytes <= 0.7 * rows["int8"].weight_bytes


def test_the_picture_has_every_point() -> None:
    drawn = (FIGURES / "fewer_bits.svg").read_text(encoding="utf-8")
    assert drawn.count("<title>") == len(ROWS) + 1
    assert "prefers-color-scheme: dark" in drawn
    again = picture([Row("digits", "int8", 1000, 0, 0.9, 10), Row("digits", "int4", 500, 3, 0.8, 10)])
    assert "digits, int4: 500 bytes, 80.00 %" in again
