# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Prose is British; identifiers, options and names of operators keep their -ize (CONTRIBUTING.md, Style)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.host.test_doc_links import PAGE_IDS, PAGES, without_code
from tools.environment import ROOT

AMERICAN = re.compile(
    r"\b(?:(?:de|re)?quantiz|optimiz|normaliz|initializ|vectoriz|summariz|recogniz)(?:ed|es|er|ing|ation)\b"
    r"|\b(?:behavior|color|colors|neighbor\w*)\b"
)
NAMES = ("docs/SUPPORTED_OPS.md", "docs/ONNX_CONFORMANCE.md", "docs/zephyr_settings.md")
"""Pages that consist of names: of operators, files and Kconfig symbols."""


def prose(text: str) -> str:
    """A page without code, indented examples and the targets of links."""
    text = re.sub(r"(?m)^    .*$", "", without_code(text))
    return re.sub(r"https?://\S+|\]\([^)]*\)|\b[\w./-]+\.(?:md|py|c|h|npz)\b", "", text)


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_prose_is_british(page: Path) -> None:
    if page.relative_to(ROOT).as_posix() not in NAMES:
        assert not AMERICAN.findall(prose(page.read_text(encoding="utf-8")))


def test_words_that_are_found_and_words_that_are_not() -> None:
    assert AMERICAN.findall(prose("a quantized model\nits normalization"))
    assert not AMERICAN.findall(
        prose("a quantised model, `quantized`, [x](a_quantized.md), BatchNormalization")
    )
