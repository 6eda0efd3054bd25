# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MISRA C:2012: the page is current, and a part of the C breaks no rule without a deviation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tinyml.api.evidence.deviations import ADVISORY, DEVIATIONS, REQUIRED
from tinyml.harness.program_build import RUNTIME_C
from tools import misra

SOME = ("dense/dense_s8.c", "softmax/softmax_s8.c", "slot/marks.c", "host/frames.c")


def test_the_page_is_current() -> None:
    assert misra.PAGE.read_text(encoding="utf-8") == misra.page(), "python -m tools.misra"


def test_deviations_are_in_order_and_none_is_from_a_mandatory_rule() -> None:
    rules = [one.rule for one in DEVIATIONS]
    assert rules == sorted(set(rules), key=lambda rule: [int(part) for part in rule.split(".")])
    assert not misra.MANDATORY & set(rules)
    assert {one.category for one in DEVIATIONS} == {REQUIRED, ADVISORY}


def cppcheck() -> None:
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed")


def test_some_sources_have_deviations_only_where_the_table_says_so(tmp_path: Path) -> None:
    cppcheck()
    sources = [*misra.generate(tmp_path, misra.MODELS[:1]), *(RUNTIME_C / name for name in SOME)]
    found = misra.violations(sources, [tmp_path])
    assert {rule for rule, _ in found} > {"11.5", "12.1"}
    assert not misra.without_deviation(found)


def test_a_broken_rule_is_found(tmp_path: Path) -> None:
    """goto and octal constants have no deviation."""
    cppcheck()
    source = tmp_path / "bad.c"
    source.write_text(
        "int f(int x)\n{\nagain:\n\tif (x > 010) {\n\t\tx--;\n\t\tgoto again;\n\t}\n\treturn x;\n}\n"
    )
    problems = misra.without_deviation(misra.violations([source], []))
    assert "bad.c:4: rule 7.1 has no deviation" in problems
    assert "bad.c:6: rule 15.1 has no deviation" in problems


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_all_of_the_runtime(tmp_path: Path) -> None:
    cppcheck()
    sources = [*misra.generate(tmp_path), *sorted(RUNTIME_C.rglob("*.c"))]
    found = misra.violations(sources, [tmp_path])
    assert not [*misra.without_deviation(found), *misra.not_needed(found)]
