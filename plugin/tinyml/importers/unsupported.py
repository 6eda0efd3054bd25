# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Collects everything unsupported in a model, for one message."""

from __future__ import annotations

from collections.abc import Iterable

from tinyml.errors import UnsupportedError


class Complaints:
    """Collects what cannot be read; tensors that depend on it are poisoned and their nodes skipped."""

    def __init__(self) -> None:
        self.poisoned: set[str] = set()
        self._found: dict[tuple[str, str], list[str]] = {}

    def poison(self, names: Iterable[str]) -> None:
        self.poisoned.update(name for name in names if name)

    def add(self, domain: str, op_type: str, error: UnsupportedError) -> None:
        kind = (domain, op_type)
        text = error.message + (f" ({error.hint})" if error.hint else "")
        self._found.setdefault(kind, [])
        if text not in self._found[kind]:
            self._found[kind].append(text)

    def raise_if_any(self) -> None:
        if not self._found:
            return
        lines = []
        for (domain, op_type), texts in sorted(self._found.items()):
            title = f"{domain}::{op_type}" if domain else op_type
            lines += [f"  {title}: {text}" for text in texts[:3]]
            if len(texts) > 3:
                lines.append(f"  {title}: and {len(texts) - 3} more")
        raise UnsupportedError(
            "the model requires features that are not supported yet:\n" + "\n".join(lines),
            "`tinyml ops` lists what is supported",
        )
