# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The C names that belong to the function around a layer's code; a kernel must not declare them."""

from __future__ import annotations

import re

RESERVED = "x, x0, x1, …, y, y0, y1, … and scratch"
"""The parameters of a layer's function: inputs, outputs and scratch memory."""

_STATEMENTS = "return|else|goto|case|do|sizeof"
_DECLARATION = re.compile(
    rf"(?:^|[;{{(]\s*)(?!(?:{_STATEMENTS})\b)"
    r"(?:(?:const|static|volatile|register|unsigned|signed|struct)\s+)*"
    r"[A-Za-z_]\w*(?:\s*\*\s*(?:const\s+)?|\s+)(?P<name>x\d*|y\d*|scratch)\s*(?:[=;,\[:]|$)"
)


def check_declaration(statement: str) -> None:
    """Raise ValueError if a statement declares a variable with a reserved name.

    Such a variable would hide the buffer of the same name, or not compile, depending on the layer's operands.
    """
    if match := _DECLARATION.search(statement):
        raise ValueError(
            f"{match['name']!r} is reserved in {statement.strip()!r}: {RESERVED} name the layer's buffers; "
            "choose another name for the variable"
        )
