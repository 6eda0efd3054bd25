# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tables of figures inside guides are those that `python -m tools.page_tables` writes."""

from __future__ import annotations

import pytest

from tools import page_tables, small_transformer, writer_tables
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


def test_no_part_takes_less_than_the_least() -> None:
    """Parts of the small transformer, on each core."""
    lines = page_tables.written(ROOT / "docs" / "quantize.md", "small transformer").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    counts = [[int(cell.replace(",", "")) for cell in row[-4:]] for row in cells if row[-1][-3:].isdecimal()]
    assert len(counts) == len(small_transformer.NAMES) + 1
    for m4, m4_least, m55, m55_least in counts:
        assert m4 > m4_least
        assert m55 > m55_least


@pytest.mark.parametrize("kind", writer_tables.MODELS)
def test_the_memory_of_a_decoder(kind: str) -> None:
    sizes = writer_tables.memory(writer_tables.compiled(kind, "cortex-m4"))
    cells = " | ".join(f"{size:,}" for size in sizes)
    assert f"| Cortex-M4 | {kind} | {cells} |" in page_tables.written(
        ROOT / "docs" / "decoders.md", "decoder"
    ), RUN


def test_the_table_of_the_writer() -> None:
    """Its bytes, which need no emulator."""
    lines = page_tables.written(ROOT / "samples" / "writer" / "README.rst", "writer").splitlines()
    stated = {line.split("  ")[0]: line.split()[-2:] for line in lines if not line.startswith("=")}
    made = [writer_tables.memory(writer_tables.compiled(kind, "cortex-m4")) for kind in writer_tables.MODELS]
    for row, place in (("arena, bytes", 0), ("caches, bytes", 1)):
        assert stated[row] == [f"{sizes[place]:,}" for sizes in made], RUN
