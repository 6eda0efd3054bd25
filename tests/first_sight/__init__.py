# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models of kinds that once went wrong at first sight, as small files made here.

A module of this package has a list ``CASES``; it is discovered automatically. A case is ``Right`` (the model
compiles and agrees with its reference), ``Refused`` (with a message) or ``Holds`` (a function that asserts).
``python -m tools.first_sight`` runs all of them, and so does tests/host/test_first_sight.py.
"""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tinyml.base.errors import TinymlError
from tinyml.compare import check
from tinyml.datasets.generated_samples import generated
from tinyml.harness import Standalone
from tinyml.ir import Shape
from tinyml.pipeline import Options, compile_model

Content: TypeAlias = Callable[[], bytes]


@dataclass(frozen=True)
class Right:
    """The model compiles, and its C computes what the reference computes."""

    name: str
    content: Content
    suffix: str = "onnx"
    outputs: tuple[str, ...] = ()
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    exact: bool = False  # every value, floats too
    steps: float | None = None
    note: str = ""  # among those that the compiler prints

    def run(self, folder: Path) -> None:
        path = _written(self.content, folder, self.name, self.suffix)
        model = check.subject(path, Options(target="host", outputs=self.outputs, shapes=self.shapes))
        graph = model.compiled.graph
        verdict = check.check(model, Standalone("host", checked=True), generated(graph, 4), steps=self.steps)
        worst = "; ".join(str(line.difference) for line in verdict.lines if not line.difference.fine)
        assert verdict.fine, f"differs from {verdict.reference}: {worst}; {'; '.join(verdict.causes)}"
        assert not self.exact or verdict.equal == verdict.values, f"{verdict.equal} of {verdict.values} equal"
        assert self.note in "\n".join(graph.notes), f"no note says {self.note!r}"


@dataclass(frozen=True)
class Refused:
    """The compiler refuses the model, and the message has all of these words."""

    name: str
    content: Content
    words: tuple[str, ...]
    suffix: str = "onnx"
    outputs: tuple[str, ...] = ()

    def run(self, folder: Path) -> None:
        path = _written(self.content, folder, self.name, self.suffix)
        try:
            compile_model(path, Options(outputs=self.outputs))
        except TinymlError as error:
            text = f"{error.message} {error.hint}"
            missing = [word for word in self.words if word not in text]
            assert not missing, f"the message lacks {missing}: {text}"
            return
        raise AssertionError("it compiles")


@dataclass(frozen=True)
class Holds:
    """Anything else; the function gets an empty folder."""

    name: str
    function: Callable[[Path], None]

    def run(self, folder: Path) -> None:
        self.function(folder)


Case: TypeAlias = Right | Refused | Holds


def _written(content: Content, folder: Path, name: str, suffix: str) -> Path:
    path = folder / f"{name}.{suffix}"
    path.write_bytes(content())
    return path


def all_cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        cases: list[Case] = getattr(importlib.import_module(f"{__name__}.{module}"), "CASES", [])
        for case in cases:
            key = f"{module}/{case.name}"
            assert key not in found, f"two cases are called {key}"
            found[key] = case
    return found


def complaint(case: Case) -> str:
    """Empty if the case is as it should be."""
    with tempfile.TemporaryDirectory(prefix="first-sight-") as folder:
        try:
            case.run(Path(folder))
        except (AssertionError, TinymlError) as error:
            return str(error) or type(error).__name__
    return ""
