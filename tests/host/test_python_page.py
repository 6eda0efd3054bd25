# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/python.md: its examples give the results shown, and its commands exist."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

import tinyml
from tinyml.verbs import VERBS
from tinyml.verbs.base import build_parser

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    pytest.importorskip("skl2onnx", reason="one example is an estimator of scikit-learn")
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 15
    assert result.failed == 0


@pytest.mark.parametrize("command", re.findall(r"^    (?:west )?tinyml (.+)$", TEXT, re.MULTILINE))
def test_command_is_understood(command: str) -> None:
    parsed = build_parser(VERBS, "tinyml", tinyml.__version__).parse_args(shlex.split(command))
    assert parsed.verb.name == command.split()[0]


def test_every_function_is_described() -> None:
    for name in ("load", "compile", "quantize", "evaluate", "run"):
        assert f"tinyml.{name}(" in TEXT
    for name in tinyml.__all__:
        assert name in TEXT or not name.endswith("Error"), name
