# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tables of figures inside guides are those that `python -m tools.page_tables` writes."""

from __future__ import annotations

import pytest

from tools import page_tables
from tools.environment import ROOT

RUN = "run python -m tools.page_tables"


def test_every_table_has_its_marks() -> None:
    for mark, (page, _) in page_tables.TABLES.items():
        assert page_tables.written(ROOT / "docs" / page, mark).count("\n") > 3


def test_transforms_are_those_of_the_record() -> None:
    lines = "".join(f"{line}\n" for line in page_tables.transforms_table())
    assert page_tables.written(ROOT / "docs" / "features.md", "transforms") == lines, RUN


@pytest.mark.tenth
@pytest.mark.parametrize("title, name, optimize", page_tables.ROWS, ids=lambda value: value)
def test_arenas_with_rows(title: str, name: str, optimize: str) -> None:
    if not (page_tables.models() / f"{name}.tflite").is_file():
        pytest.skip("the published models are not here: set TINYML_MODELS")
    sizes = " | ".join(f"{size:,}" for size in page_tables.row_bytes(name, optimize))
    assert f"| {title} | {sizes} |" in page_tables.written(ROOT / "docs" / "rows.md", "rows"), RUN


def test_the_memory_of_a_decoder() -> None:
    sizes = " | ".join(f"{size:,}" for size in page_tables.decoder_bytes(page_tables.writer("cortex-m4")))
    assert f"| Cortex-M4 | {sizes} |" in page_tables.written(ROOT / "docs" / "decoders.md", "decoder"), RUN
