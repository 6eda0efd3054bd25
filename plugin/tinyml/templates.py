# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Jinja templates of this package: how all of them are read and filled in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2


@cache
def environment(folder: str, escaped: bool = False) -> jinja2.Environment:
    """For the templates in ``folder``; one in a process, for parsing them takes longer than filling them in.

    ``escaped``: what is filled in is text, not HTML.
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
    """The text of a template with ``context`` filled in."""
    return environment(folder).get_template(template).render(context)
