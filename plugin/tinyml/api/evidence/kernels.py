# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of a model, and what the project's tests and proofs have shown of them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from tinyml.api.evidence.models import Remade
from tinyml.setup import installation

CHECKS = Path(__file__).parent / "data" / "checks.json"
"""Written by `python -m tools.kernel_checks`: how many cases use a kernel, and which files are proved."""

_ASSEMBLY = re.compile(r"\b(?:__asm__|__asm|asm)\b")


@cache
def checks() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CHECKS.read_text(encoding="utf-8"))
    return found


def kernels(model: Remade) -> list[dict[str, Any]]:
    """One entry for each kernel: its layers, its files, and its status."""
    known, runtime = checks(), installation.runtime()
    found: dict[str, dict[str, Any]] = {}
    for step, chosen in enumerate(model.model.compiled.selected):
        kernel = chosen.kernel
        entry = found.setdefault(
            kernel.name,
            {
                "kernel": kernel.name,
                "library": str(kernel.library.value),
                "layers": [],
                "files": [],
                "cases": known["cases"].get(kernel.name, {"computer": 0, "cores": 0}),
            },
        )
        entry["layers"].append(step)
        entry["files"] = sorted({*entry["files"], *kernel.runtime_sources(chosen.layer)})
    for entry in found.values():
        files = [runtime / name for name in entry["files"]]
        entry["proofs"] = {name: known["proofs"][name] for name in entry["files"] if name in known["proofs"]}
        entry["assembly"] = any(_has_assembly(path) for path in files)
    return list(found.values())


def _has_assembly(source: Path, seen: frozenset[Path] = frozenset()) -> bool:
    """Whether a source or a header that it includes has inline assembly, for whatever core."""
    if source in seen or not source.is_file():
        return False
    text = source.read_text(encoding="utf-8")
    if _ASSEMBLY.search(text):
        return True
    names = re.findall(r'#include [<"]([^>"]+)[>"]', text)
    root = installation.runtime()
    places = [folder / name for name in names for folder in (source.parent, root, root / "include")]
    return any(_has_assembly(place, seen | {source}) for place in places)
