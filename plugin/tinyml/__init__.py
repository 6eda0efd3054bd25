# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""tinyml: compile an ONNX or TFLite model into plain C that is part of a firmware build.

This module is the public API; everything below it is private. docs/python.md describes it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyml.api.bounding import Bound, bound
    from tinyml.api.compiled import CompiledModel, compile
    from tinyml.api.connected import Device, DeviceProfile, connect
    from tinyml.api.costs import Cost, LayerCost, cost
    from tinyml.api.evaluated import Evaluation, evaluate
    from tinyml.api.exploration import Exploration, Point
    from tinyml.api.exploring import explore
    from tinyml.api.quantized import QuantizedModel, quantize
    from tinyml.api.reference_session import reference_session
    from tinyml.api.replaying import Figures, replay
    from tinyml.api.reported import LayerProfile, ModelReport, ProfiledLayer, profile, report
    from tinyml.api.running import RunResult, run
    from tinyml.api.searching import Candidate, SearchResult, search
    from tinyml.api.sources import Model, load
    from tinyml.api.verified import Verification, verify
    from tinyml.base.errors import (
        BudgetError,
        ConfigError,
        ModelError,
        TinymlError,
        ToolError,
        UnsupportedError,
    )

__version__ = "0.1.0"

__all__ = [
    "Bound",
    "BudgetError",
    "Candidate",
    "CompiledModel",
    "ConfigError",
    "Cost",
    "Device",
    "DeviceProfile",
    "Evaluation",
    "Exploration",
    "Figures",
    "LayerCost",
    "LayerProfile",
    "Model",
    "ModelError",
    "ModelReport",
    "Point",
    "ProfiledLayer",
    "QuantizedModel",
    "RunResult",
    "SearchResult",
    "TinymlError",
    "ToolError",
    "UnsupportedError",
    "Verification",
    "__version__",
    "bound",
    "compile",
    "connect",
    "cost",
    "evaluate",
    "explore",
    "load",
    "profile",
    "quantize",
    "reference_session",
    "replay",
    "report",
    "run",
    "search",
    "verify",
]

_HOMES = {
    "api.bounding": ("Bound", "bound"),
    "api.compiled": ("CompiledModel", "compile"),
    "api.connected": ("Device", "DeviceProfile", "connect"),
    "api.costs": ("Cost", "LayerCost", "cost"),
    "api.evaluated": ("Evaluation", "evaluate"),
    "api.exploration": ("Exploration", "Point"),
    "api.exploring": ("explore",),
    "api.quantized": ("QuantizedModel", "quantize"),
    "api.reference_session": ("reference_session",),
    "api.replaying": ("Figures", "replay"),
    "api.reported": ("LayerProfile", "ModelReport", "ProfiledLayer", "profile", "report"),
    "api.running": ("RunResult", "run"),
    "api.searching": ("Candidate", "SearchResult", "search"),
    "api.sources": ("Model", "load"),
    "api.verified": ("Verification", "verify"),
    "base.errors": (
        "BudgetError",
        "ConfigError",
        "ModelError",
        "TinymlError",
        "ToolError",
        "UnsupportedError",
    ),
}
_HOME = {name: f"tinyml.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import on first use: command lines and builds import this package and must start quickly."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinyml' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    if not isinstance(found, FunctionType):
        return found
    globals()[name] = import_module("tinyml.api.wording").in_python(found)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps the names of the API: importing a subpackage such as ``tinyml.quantize`` binds its name here."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOME or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
