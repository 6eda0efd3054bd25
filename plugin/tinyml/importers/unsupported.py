# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Collects everything unsupported in a model, for one message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyml.base.errors import UnsupportedError


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

    def raise_if_any(self, outputs: Sequence[str] = ()) -> None:
        """``outputs`` of the model: those that nothing unsupported leads to could be compiled alone."""
        if not self._found:
            return
        possible = [name for name in outputs if name not in self.poisoned]
        lines = []
        for (domain, op_type), texts in sorted(self._found.items()):
            title = f"{domain}::{op_type}" if domain else op_type
            lines += [f"  {title}: {text}" for text in texts[:3]]
            if len(texts) > 3:
                lines.append(f"  {title}: and {len(texts) - 3} more")
        raise UnsupportedError(
            "the model requires features that are not supported yet:\n" + "\n".join(lines),
            f"these outputs do not need them: --outputs {','.join(possible)}"
            if possible
            else "`tinyml ops` lists what is supported",
        )
