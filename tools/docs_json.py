# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The reference of JSON files for the documentation site, from the classes whose fields they have."""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import fields
from typing import Any

import tinyml
from tinyml.api.after_learning import Learnt
from tinyml.api.evaluated import Evaluation, Original, OutputDifference
from tinyml.compare.accuracy.scores import Classification, ClassScore, Regression
from tinyml.cost.energy import Energy
from tinyml.quantize.report import Choice, LayerNoise, Remedy, Variant
from tinyml.quantize.report import Report as QuantizationReport
from tinyml.quantize.sparsity import Sparsity
from tinyml.report.facts import (
    Estimated,
    Image,
    LayerFacts,
    Measured,
    OperandFacts,
    Profile,
    Report,
    TensorFacts,
)
from tinyml.report.stages import StageFacts
from tools.environment import ROOT

DIGITS = ROOT / "samples" / "digits" / "model.onnx"
NUMBERS = re.compile(r"\[[\s\d,]*\]")
EXAMPLE = "Of the sample digits on a Cortex-M4; of lists of objects, the first element:"
FILES: dict[str, tuple[Any, ...]] = {
    "`report --json`, `profile --json`, `NAME_report.json`": (
        *(Report, LayerFacts, OperandFacts, TensorFacts, StageFacts, Measured, Estimated, Profile, Image),
    ),
    "`evaluate --json`": (
        *(Evaluation, Classification, ClassScore, Regression, Original, OutputDifference, Energy, Learnt),
    ),
    "`quantize --report`": (QuantizationReport, LayerNoise, Remedy, Choice, Variant, Sparsity),
}
INTRODUCTION = """\
Commands write these files. Fields are added, never renamed or dropped, while `schema` stays the same. Types
are Python's: `None` is `null` in JSON, tuples and lists are arrays, mappings are objects.

`bound`, `explore`, `bench`, `ops`, `doctor` and `watch` have a `--json`, too; run it to see the fields.
"""


def page() -> str:
    """One table per class, with the comments that the fields have in the source."""
    lines = ["# JSON files", "", INTRODUCTION]
    for title, content in (("`NAME.json` of `compile`", _summary()), ("`cost --json`", _cost())):
        text = json.dumps(_shortened(content), indent=1)
        text = NUMBERS.sub(lambda m: "".join(m[0].split()).replace(",", ", "), text)
        lines += [f"## {title}", "", EXAMPLE, "", "```json", text, "```", ""]
    for title, kinds in FILES.items():
        lines += [f"## {title}", ""]
        for kind in kinds:
            notes = comments(kind)
            lines += [
                f"### {kind.__name__}",
                "",
                _first_line(kind),
                "",
                "| field | type | meaning |",
                "|---|---|---|",
            ]
            lines += [f"| `{f.name}` | `{_type(f.type)}` | {notes.get(f.name, '')} |" for f in fields(kind)]
            lines.append("")
    return "\n".join(lines)


def _summary() -> Any:
    return tinyml.compile(DIGITS, name="digits", target="cortex-m4").summary


def _cost() -> Any:
    return tinyml.cost(tinyml.load(DIGITS, name="digits"), "cortex-m4").as_json()


def _shortened(value: Any) -> Any:
    """Of lists of objects, such as layers, the first one."""
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(one) for one in (value[:1] if value and isinstance(value[0], dict) else value)]
    return value


def _first_line(kind: Any) -> str:
    text = kind.__doc__ or ""
    return (
        ""
        if text.startswith(f"{kind.__name__}(")
        else text.strip().partition("\n\n")[0].replace("\n", " ").replace("``", "`")
    )


def _type(annotation: object) -> str:
    return str(annotation).replace(" | ", " or ")


def comments(kind: Any) -> dict[str, str]:
    """What stands behind a field on its line."""
    source = inspect.getsource(kind)
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            rest = lines[node.end_lineno - 1][node.end_col_offset :] if node.end_lineno else ""
            found[node.target.id] = rest.partition("#")[2].strip().replace("|", "\\|").replace("``", "`")
    return found
