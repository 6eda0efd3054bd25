# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every parameter of the public API has its line in the documentation, and choices have types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

import tinyml
from tinyml.api import choices
from tinyml.api.searching import BUDGETS
from tinyml.compare.accuracy.truth import TASKS
from tinyml.cores.machines import MACHINES
from tinyml.cores.targets import TARGETS
from tinyml.settings import adapt_request, model_forms, optimize, passing, quantize_request, table
from tinyml.settings.setting import PYTHON
from tools import docs

WORDS: dict[str, tuple[Any, Any]] = {
    "TargetName": (choices.TargetName, TARGETS),
    "MachineName": (choices.MachineName, MACHINES),
    "Kernels": (choices.Kernels, model_forms.KERNELS.choices),
    "Optimize": (choices.Optimize, optimize.GOALS),
    "Arithmetic": (choices.Arithmetic, model_forms.ARITHMETIC.choices),
    "Io": (choices.Io, passing.SPELLINGS),
    "AdaptKind": (choices.AdaptKind, adapt_request.KINDS),
    "Method": (choices.Method, quantize_request.METHODS),
    "Interface": (choices.Interface, quantize_request.IO),
    "Leaves": (choices.Leaves, quantize_request.LEAVES),
    "Weights": (choices.Weights, quantize_request.WEIGHTS),
    "Task": (choices.Task, TASKS),
    "CostName": (choices.CostName, BUDGETS),
    "Objective": (choices.Objective, ("score", *BUDGETS)),
}
TYPED = {
    **dict.fromkeys(
        ("kernels", "optimize", "io", "method", "leaves", "weights", "task", "reference"), "strict"
    ),
    **dict.fromkeys(("target", "core", "on", "objectives", "against"), "named"),
}
"""Parameters that are choices wherever a function has them, unless they are models."""


def public() -> Iterator[tuple[str, Any]]:
    for name in tinyml.__all__:
        found = getattr(tinyml, name)
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found) and not issubclass(found, Exception):
            for method in vars(found):
                if not method.startswith("_") and inspect.isfunction(getattr(found, method)):
                    yield f"{name}.{method}", getattr(found, method)


FUNCTIONS = dict(public())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_its_line(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name])
    assert text, f"{name} has no description"
    parameters = [one for one in inspect.signature(FUNCTIONS[name]).parameters if one != "self"]
    assert re.findall(r"^:param (\w+): \S", text, re.MULTILINE) == parameters


@pytest.mark.parametrize("name", WORDS)
def test_types_have_the_words_of_the_tables(name: str) -> None:
    kind, known = WORDS[name]
    assert get_args(kind) == tuple(known)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_choices_have_types(name: str) -> None:
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        annotation = str(parameter.annotation)
        if parameter.name in TYPED and "ModelLike" not in annotation:
            words = set(re.findall(r"\w+", annotation))
            assert words & {*vars(choices)}, f"{name}({parameter.name}: {annotation}) names no choice"


def test_settings_of_compile() -> None:
    explicit = set(inspect.signature(tinyml.compile).parameters)
    assert set(choices.CompileSettings.__annotations__) == set(table.settings(PYTHON)) - explicit


def test_the_page_lists_the_settings_of_compile() -> None:
    page = docs.python_api()
    for key in choices.CompileSettings.__annotations__:
        assert f"- **{key}** (*" in page, key
    assert "- `Optimize`: `balanced`, `speed`, `size`, `ram`" in page
    assert "`DataLike`: A path (.npz" in page
    assert "kernels come from: auto, cmsis-nn, portable" in page
