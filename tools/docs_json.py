# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The reference of JSON files for the documentation site, from the classes whose fields they have."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from typing import Any

from tinyml.api.evaluated import Evaluation, Original, OutputDifference
from tinyml.compare.accuracy.scores import Classification, ClassScore, Regression
from tinyml.quantize.report import Choice, LayerNoise, Remedy, Variant
from tinyml.quantize.report import Report as QuantizationReport
from tinyml.report.facts import (
    Estimated,
    LayerFacts,
    Measured,
    OperandFacts,
    Profile,
    Report,
    StageFacts,
    TensorFacts,
)

FILES: dict[str, tuple[Any, ...]] = {
    "`report --json`, `profile --json`, `NAME_report.json`": (
        *(Report, LayerFacts, OperandFacts, TensorFacts, StageFacts, Measured, Estimated, Profile),
    ),
    "`evaluate --json`": (*(Evaluation, Classification, ClassScore, Regression, Original, OutputDifference),),
    "`quantize --json`": (QuantizationReport, LayerNoise, Remedy, Choice, Variant),
}


def page() -> str:
    """One table per class, with the comments that the fields have in the source."""
    lines = [
        "# JSON files",
        "",
        "Fields are added, never renamed or dropped, while `schema` stays the same.",
        "",
    ]
    for title, kinds in FILES.items():
        lines += [f"## {title}", ""]
        for kind in kinds:
            notes = _comments(kind)
            lines += [
                f"### {kind.__name__}",
                "",
                _first_line(kind),
                "",
                "| field | type | |",
                "|---|---|---|",
            ]
            lines += [f"| `{f.name}` | `{_type(f.type)}` | {notes.get(f.name, '')} |" for f in fields(kind)]
            lines.append("")
    return "\n".join(lines)


def _first_line(kind: Any) -> str:
    text = kind.__doc__ or ""
    return (
        "" if text.startswith(f"{kind.__name__}(") else text.strip().partition("\n\n")[0].replace("\n", " ")
    )


def _type(annotation: object) -> str:
    return str(annotation).replace(" | ", " or ")


def _comments(kind: Any) -> dict[str, str]:
    """What stands behind a field on its line."""
    source = inspect.getsource(kind)
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            rest = lines[node.end_lineno - 1][node.end_col_offset :] if node.end_lineno else ""
            found[node.target.id] = rest.partition("#")[2].strip().replace("|", "\\|")
    return found
