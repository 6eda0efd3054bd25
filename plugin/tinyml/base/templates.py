# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Jinja templates of this package: how all of them are read and filled in.

No text from outside reaches a generated file as it is: in HTML it is escaped, in C (and CMake, and YAML) it
passes ``c.plain``. Only text that the compiler declares to be code, ``c.Code``, does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2
from jinja2.nodes import EvalContext

from tinyml.base import c
from tinyml.base.kept_templates import KeptTemplates


@cache
def environment(folder: str, escaped: bool = False) -> jinja2.Environment:
    """The environment for the templates in ``folder``; cached, because parsing takes longer than rendering.

    ``escaped``: the templates are HTML; else they are C, or something whose comments are one line.
    """
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tinyml", f"{folder}/templates"),
        autoescape=escaped,
        finalize=None if escaped else _filled_in,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        bytecode_cache=KeptTemplates(),
    )


@jinja2.pass_eval_context  # when a template is rendered, constants too: what is kept of it stays right
def _filled_in(_: EvalContext, value: Any) -> Any:
    """What an expression of a template prints."""
    return c.plain(value) if isinstance(value, str) and not isinstance(value, c.Code) else value


def render(folder: str, template: str, context: Mapping[str, Any]) -> str:
    """The template rendered with ``context``."""
    return environment(folder).get_template(template).render(context)
