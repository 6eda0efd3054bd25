# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The reference of the C API for the documentation site: generated headers of samples, and the runtime's."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import tinyml
from tools.environment import ROOT

HEADERS = ROOT / "plugin" / "tinyml" / "runtime" / "include" / "tinyml"
C_API = {
    "tinyml.h": "Models",
    "values.h": "Real numbers in and out",
    "stream.h": "Streams of samples",
    "decision.h": "Decisions over time",
    "watch.h": "What a model has seen and decided",
    "adapt.h": "Learning on the device",
    "host.h": "Requests of a computer",
    "player.h": "Models that are data",
    "slot.h": "Models in slots",
    "slot_receiver.h": "Receiving a model",
}
"""Headers that applications include; the others are for generated code."""

SAMPLES = ROOT / "samples"
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "`io: int8`, of a model with a float interface": ("digits", {"io": "int8"}),
    "`io: rows`": ("digits", {"io": "rows"}),
    "`io: caller`, of `tinyml compile` and Python": ("digits", {"io": "caller"}),
    "`frontend:`, of a model that keeps state": (
        "wake_word",
        {"frontend": {"kind": "micro", "step_ms": 10}},
    ),
    "`classes:`": ("digits", {"classes": [f"digit {number}" for number in range(10)]}),
    "`watch: true`": ("digits", {"watch": True}),
    "`adapt: last`": ("digits", {"adapt": "last"}),
}
"""Settings that change what a model offers, and a sample for each."""

INTRODUCTION = """\
Every model has a header of its own, with functions that carry its name: a model called `kws` gives `kws.h`
with `kws_run()`. The first part of this page has the headers of two samples, as the compiler writes them; the
second part has the headers that serve every model.
"""


def page() -> str:
    """The header of a sample, what settings add to it, then the headers that serve every model."""
    plain = _header("digits", {})
    lines = ["# C API", "", INTRODUCTION]
    lines += ["## A model: `digits.h`", "", "```c", plain.rstrip(), "```", ""]
    for title, (sample, settings) in VARIANTS.items():
        before = plain.replace("digits", sample).replace("DIGITS", sample.upper())
        lines += [f"### With {title}", "", "```c", *_added(before, _header(sample, settings)), "```", ""]
    for name, title in C_API.items():
        code = (HEADERS / name).read_text(encoding="utf-8")
        lines += [f"## {title}: `<tinyml/{name}>`", "", "```c", code.rstrip(), "```", ""]
    return "\n".join(lines)


def _header(sample: str, settings: Mapping[str, Any]) -> str:
    compiled = tinyml.compile(SAMPLES / sample / "model.onnx", name=sample, target="cortex-m4", **settings)
    return str(compiled.files[f"{sample}.h"])


def _added(plain: str, header: str) -> list[str]:
    """The lines that a header has beyond those of the plain one, without what is about its own file."""
    before, after = plain.splitlines(), header.splitlines()
    lines: list[str] = []
    for tag, _, _, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            lines += [line for line in after[start:end] if "_SET " not in line]
    return "\n".join(lines).strip("\n").splitlines()
