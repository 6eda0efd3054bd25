# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loads and renders the Jinja templates of this package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2


@cache
def environment(folder: str, escaped: bool = False) -> jinja2.Environment:
    """The environment for the templates in ``folder``; cached, because parsing takes longer than rendering.

    ``escaped``: escape values for HTML.
    """
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tinyml", f"{folder}/templates"),
        autoescape=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )


def render(folder: str, template: str, context: Mapping[str, Any]) -> str:
    """The template rendered with ``context``."""
    return environment(folder).get_template(template).render(context)
