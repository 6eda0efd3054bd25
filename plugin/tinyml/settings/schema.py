# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""tinyml.yaml as JSON Schema, with which editors complete and check its keys."""

from __future__ import annotations

from typing import Any

from tinyml.settings import table
from tinyml.settings.setting import YAML

NEEDED = ("name", "file")


def schema() -> dict[str, Any]:
    """Made from the table of settings; it accepts every file that the builds accept."""
    properties = {}
    for name, entry in table.settings(YAML).items():
        form = entry.form.schema()
        properties[name] = {"description": entry.about, **(form if name in NEEDED else _or_nothing(form))}
    model = {
        "type": "object",
        "properties": properties,
        "required": list(NEEDED),
        "additionalProperties": False,
    }
    kernels = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    player = {
        "description": "which kernels the firmware has for models that are data: all, groups of kernels, "
        "or files of models that need them",
        **_or_nothing(kernels),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "tinyml.yaml: the models of an application",
        "type": "object",
        "properties": {
            "models": _or_nothing({"type": "array", "items": model}),
            "player": player,
        },
        "additionalProperties": False,
    }


def _or_nothing(form: dict[str, Any]) -> dict[str, Any]:
    """A key without a value counts as one that is not there."""
    return {"anyOf": [form, {"type": "null"}]}
