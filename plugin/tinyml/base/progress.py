# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How long tasks tell what they have done; the command line shows it as a bar (``verbs/progress.py``)."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the steps that are done, and all steps."""


def silent(what: str, done: int, total: int) -> None:
    """Shows nothing."""
