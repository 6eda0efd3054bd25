# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The record of a run: the list of cases that pass, and the page in the documentation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx

from tests.conformance import own_cases
from tests.conformance.cases import GROUPS
from tests.conformance.run import FAILED, PASSED, REFUSED, Verdict

PASSED_FILE = Path(__file__).parent / "passed.txt"
PAGE = Path(__file__).parents[2] / "docs" / "ONNX_CONFORMANCE.md"
WITH_CONSTANTS = "with constants"
OWN = "## int16 and recurrent layers"
"""The heading of the last section, which is about our own cases."""
OTHER = "strings, sequences, optionals, control flow, training, randomness, unknown sizes, tiny floats"


def recorded() -> dict[str, bool]:
    """Cases that passed when the list was written; True: only with operands as constants."""
    lines = PASSED_FILE.read_text(encoding="utf-8").splitlines() if PASSED_FILE.exists() else []
    return {line.split()[0]: line.endswith(WITH_CONSTANTS) for line in lines if line.strip()}


def passed_text(verdicts: Iterable[Verdict]) -> str:
    return "".join(
        f"{v.case.name} {WITH_CONSTANTS}\n" if v.baked else f"{v.case.name}\n"
        for v in verdicts
        if v.status == PASSED
    )


def problems(verdicts: Iterable[Verdict], known: dict[str, bool]) -> list[str]:
    """Regressions: cases that fail, and cases that passed before and no longer do."""
    found = []
    for verdict in verdicts:
        name = verdict.case.name
        if verdict.status == FAILED:
            found.append(f"{name} failed: {verdict.reason}")
        elif name in known and verdict.status == REFUSED:
            found.append(f"{name} passed before and is refused now: {verdict.reason}")
        elif name in known and verdict.baked and not known[name]:
            found.append(f"{name} passed before as it is, and now only {WITH_CONSTANTS}")
    return found


def page(verdicts: Sequence[Verdict]) -> str:
    """docs/ONNX_CONFORMANCE.md"""
    parts = [
        "# ONNX's own node tests",
        "",
        "<!-- Written by `python -m tools.conformance`; do not edit. -->",
        "",
        f"The `onnx` package ({onnx.__version__}) defines {len(verdicts)} small models in Python, each with "
        "inputs and expected outputs. The compiler translates each of them to C, which is compiled on "
        "the host with all warnings as errors and runs under AddressSanitizer and "
        "UndefinedBehaviorSanitizer. Integers must be equal; floats may differ by 2e-5 or by 1e-5 of their "
        "value, whichever is larger.",
        "",
        "* **passed**: the outputs are correct, with all inputs given at run time;",
        "* **with constants**: the outputs are correct if operands that are constants in real models "
        "(shapes, axes, pads) are given as constants;",
        "* **refused**: the compiler reports that it does not support the case, and why;",
        "* **failed**: anything else. No case may fail.",
        "",
        "`python -m tools.conformance --check`, which is part of the test suite, fails if a case fails or if "
        "a case that passed before is refused.",
        "",
        "## Totals",
        "",
        *_totals(verdicts),
        "",
        "## By operator",
        "",
        *_operators(verdicts),
        "",
        "## Why cases are refused",
        "",
        *_reasons(verdicts),
    ]
    return "\n".join(parts) + "\n"


def own_section(verdicts: Sequence[Verdict]) -> str:
    """The end of docs/ONNX_CONFORMANCE.md"""
    rows = [_row(["Cases", "of", "passed", "refused", "failed"]), "|---|--:|--:|--:|--:|"]
    for group, meaning in own_cases.GROUPS.items():
        own = [v for v in verdicts if v.case.group == group]
        rows.append(_row([f"{group}: {meaning}", len(own), *_plain_counts(own)]))
    by_operator: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_operator[verdict.case.op_type].append(verdict)
    operators = [_row(["Operator", "passed", "refused", "failed"]), "|---|--:|--:|--:|"]
    operators += [
        _row([operator, *(count or "" for count in _plain_counts(own))])
        for operator, own in sorted(by_operator.items())
    ]
    text = (
        "ONNX's cases have no layer with weights on int16, and 18 recurrent layers. These cases are "
        "ours. Their expected outputs are those of onnxruntime, or of LiteRT's reference kernels for "
        "TFLite models; they run in the same way, under the same rules. The int16 models of ONNX have "
        "scales that are powers of two, so that onnxruntime's float32 is exact. All must pass: "
        "`python -m tools.conformance --own` runs them and writes this section."
    )
    return "\n".join([OWN, "", text, "", *rows, "", *operators]) + "\n"


def _plain_counts(verdicts: Iterable[Verdict]) -> list[int]:
    count = Counter(verdict.status for verdict in verdicts)
    return [count[status] for status in (PASSED, REFUSED, FAILED)]


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _counts(verdicts: Iterable[Verdict]) -> list[int]:
    count = Counter(
        (WITH_CONSTANTS if verdict.baked and verdict.status == PASSED else verdict.status)
        for verdict in verdicts
    )
    return [count[status] for status in (PASSED, WITH_CONSTANTS, REFUSED, FAILED)]


def _totals(verdicts: Sequence[Verdict]) -> list[str]:
    titles = ["Cases", "of", "passed", "with constants", "refused", "failed"]
    rows = [_row(titles), "|---|--:|--:|--:|--:|--:|"]
    for group, meaning in {**GROUPS, "other": OTHER}.items():
        own = [v for v in verdicts if v.case.group == group]
        rows.append(_row([f"{group.replace('_', ' ')}: {meaning}", len(own), *_counts(own)]))
    rows.append(_row(["all", len(verdicts), *_counts(verdicts)]))
    return rows


def _operators(verdicts: Sequence[Verdict]) -> list[str]:
    """Without the group "other", which is outside the scope of this compiler."""
    by_operator: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.case.group != "other":
            by_operator[verdict.case.op_type].append(verdict)
    rows = [_row(["Operator", "passed", "with constants", "refused", "failed"]), "|---|--:|--:|--:|--:|"]
    rows += [
        _row([operator, *(count or "" for count in _counts(own))])
        for operator, own in sorted(by_operator.items())
    ]
    return rows


def _reasons(verdicts: Sequence[Verdict]) -> list[str]:
    """The refused cases of the three lists by name, and the number of the others."""
    named: dict[str, list[str]] = defaultdict(list)
    counted: Counter[str] = Counter()
    for verdict in verdicts:
        if verdict.status == REFUSED and verdict.case.group != "other":
            named[verdict.reason].append(f"`{verdict.case.name.removeprefix('test_')}`")
        elif verdict.status == REFUSED:
            counted[_general(verdict.reason)] += 1
    rows = [
        f"* {reason} ({len(cases)}: {', '.join(cases)})"
        for reason, cases in sorted(named.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    rows = rows or ["No case of the three lists is refused."]
    others = [
        f"* {reason}: {count}" for reason, count in sorted(counted.items(), key=lambda i: (-i[1], i[0]))
    ]
    return [*rows, "", "Of the others:", "", *others] if others else rows


def _general(reason: str) -> str:
    """A reason without the names in it, which differ from case to case."""
    first = reason.split("; ")[0]
    return re.sub(r"'[^']*'", "…", first.split(" (")[0])
