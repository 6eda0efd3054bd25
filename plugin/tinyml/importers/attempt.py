# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads a part of a model on trial: what the reading changed can be undone."""

from __future__ import annotations

from typing import Any


class Attempt:
    """Remembers what some objects hold. Their collections are copied, what is in these is not."""

    def __init__(self, *objects: object) -> None:
        self.objects = objects
        self._before = [(one, {name: _copied(value) for name, value in vars(one).items()}) for one in objects]

    def undo(self) -> None:
        """May be called several times."""
        for one, before in self._before:
            vars(one).update({name: _copied(value) for name, value in before.items()})


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: list(item) if isinstance(item, list) else item for key, item in value.items()}
    return value.copy() if isinstance(value, (list, set)) else value
