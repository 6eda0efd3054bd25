# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The table of tools for quantisation in docs/quantize.md has the figures of this compiler."""

from __future__ import annotations

import pytest

from tests.support.record_trained import TOOLS as RECORDED
from tools.trained_models import TOOLS, sizes, stated


def test_every_recorded_file_has_a_row() -> None:
    assert set(stated()) == set(TOOLS) == set(RECORDED)


@pytest.mark.parametrize("file", TOOLS)
def test_sizes(file: str) -> None:
    assert stated()[file] == sizes(file)
