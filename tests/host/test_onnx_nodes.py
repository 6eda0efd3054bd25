# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own node tests: none fails, and cases that passed before still pass."""

from __future__ import annotations

from functools import cache

import onnx
import pytest

from tests.conformance.cases import GROUPS, NodeCase, collect, names
from tests.conformance.own_cases import own_cases
from tests.conformance.record import PAGE, own_section, problems, recorded
from tests.conformance.run import FAILED, PASSED, REFUSED, Verdict, run_cases
from tests.depth import some

SHARDS = 8


@cache
def cases() -> list[NodeCase]:
    return collect()


@pytest.fixture(scope="module")
def collected() -> list[NodeCase]:
    """onnx computes them in ten seconds: the tests of this file stay on one worker."""
    return cases()


@cache
def in_c() -> set[str]:
    """The cases that are computed in C, and not only in numpy: a fixed tenth in `make test`."""
    return set(some(case.name for case in cases()))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_node_cases(shard: int, collected: list[NodeCase]) -> None:
    part = collected[shard::SHARDS]
    found = problems(run_cases(part, in_c=lambda case: case.name in in_c()), recorded())
    assert not found, "\n".join(found)


def test_our_own_cases() -> None:
    """int16 and recurrent layers: all pass, and the page says so."""
    pytest.importorskip("onnxruntime", reason="the reference")
    pytest.importorskip("ai_edge_litert", reason="the reference of TFLite models")
    verdicts = run_cases(own_cases())
    found = [f"{v.case.name} {v.status}: {v.reason}" for v in verdicts if v.status != PASSED]
    assert not found, "\n".join(found)
    assert PAGE.read_text(encoding="utf-8").endswith(own_section(verdicts)), (
        "python -m tools.conformance --own"
    )


def test_the_record_speaks_of_cases_that_exist(collected: list[NodeCase]) -> None:
    """A newer onnx may drop cases; then the record is to be written again."""
    missing = set(recorded()) - {case.name for case in collected}
    assert not missing, f"onnx {onnx.__version__} lacks {sorted(missing)}: run python -m tools.conformance"


def test_the_lists_are_disjoint() -> None:
    listed = [name for group in GROUPS for name in names(group)]
    assert len(listed) == len(set(listed))


def test_the_page_counts_what_the_record_lists() -> None:
    """Neither of the two has been edited by hand."""
    totals = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| all |")]
    cells = [int(cell) for cell in totals[0].split("|")[3:5]]
    known = recorded()
    assert cells == [len(known) - sum(known.values()), sum(known.values())]


@pytest.mark.parametrize(
    "status,reason,baked,complaint",
    [
        (FAILED, "2 of 3 differ", False, "test_x failed: 2 of 3 differ"),
        (REFUSED, "no", False, "test_x passed before and is refused now: no"),
        (PASSED, "", True, "test_x passed before as it is, and now only with constants"),
        (PASSED, "", False, None),
    ],
)
def test_what_counts_as_a_problem(status: str, reason: str, baked: bool, complaint: str | None) -> None:
    case = NodeCase("test_x", "applicable", "X", onnx.ModelProto(), [], [])
    verdict = Verdict(case, status, reason, baked)
    assert problems([verdict], {"test_x": False}) == ([complaint] if complaint else [])
