# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""tinyml.yaml as JSON Schema, with which editors complete and check its keys."""

from __future__ import annotations

import re
from typing import Any

from tinyml.settings import table
from tinyml.settings.setting import YAML

NEEDED = ("name", "file")
LINK = re.compile(r"\[[^\]]*\]\((\w+\.md)\)")


def schema() -> dict[str, Any]:
    """Made from the table of settings; it accepts every file that the builds accept."""
    properties = {}
    for name, entry in table.settings(YAML).items():
        form = entry.form.schema()
        about = LINK.sub(r"docs/\1", entry.about)  # an editor does not know where the page is
        properties[name] = {"description": about, **(form if name in NEEDED else _or_nothing(form))}
    model = {
        "type": "object",
        "properties": properties,
        "required": list(NEEDED),
        "additionalProperties": False,
    }
    kernels = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    player = {
        "description": "which kernels the firmware has for models that are data: all, groups of kernels, "
        "or files of models and packs that need them",
        **_or_nothing(kernels),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "tinyml.yaml",
        "type": "object",
        "properties": {
            "models": {
                "description": "the models of the application; `west tinyml add MODEL` adds one",
                **_or_nothing({"type": "array", "items": model}),
            },
            "player": player,
        },
        "additionalProperties": False,
    }


def _or_nothing(form: dict[str, Any]) -> dict[str, Any]:
    """A key without a value counts as one that is not there.

    One schema with several types is better than several schemas: editors then name the key that is wrong.
    """
    if "anyOf" in form:
        return {"anyOf": [*form["anyOf"], {"type": "null"}]}
    if "enum" in form:
        return {**form, "type": ["string", "null"], "enum": [*form["enum"], None]}
    types = form["type"] if isinstance(form["type"], list) else [form["type"]]
    return {**form, "type": [*types, "null"]}
