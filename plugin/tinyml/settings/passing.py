# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How a model and its caller pass inputs and outputs: the choices of ``io:``."""

from __future__ import annotations

from collections.abc import Iterable

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

ARENA = "arena"
WORDS = {
    "int8": "the inputs and outputs of a quantised model with a float interface become integers",
    "rows": "the application feeds the input in rows to NAME_feed_rows()",
    "caller": "they are in buffers given to NAME_run()",
}
SPELLINGS = (ARENA, "caller", "int8", "caller,int8", "rows", "rows,int8")
"""Every combination, as `--io` writes it; the order of the words does not matter."""


@dataclass(frozen=True)
class Io:
    """Independent choices; without any of them, inputs and outputs are in the arena, of the model's types.

    As text they are words separated by commas, such as ``rows,int8``, or ``arena``.
    """

    caller: bool = False  # in the caller's buffers
    rows: bool = False  # the application feeds the input in rows as they arrive
    int8: bool = False  # integers where a quantised model has a float interface

    def __str__(self) -> str:
        return ",".join(word for word in ("caller", "rows", "int8") if getattr(self, word)) or ARENA

    @classmethod
    def of(cls, value: Io | str | Iterable[str]) -> Io:
        """From the words of ``value``: a text with commas, or a list."""
        if isinstance(value, Io):
            return value
        words = value.split(",") if isinstance(value, str) else [str(word) for word in value]
        chosen = {word.strip() for word in words}
        found = cls(**dict.fromkeys(chosen - {ARENA}, True)) if chosen <= {ARENA, *WORDS} else None
        in_two_places = len(chosen & {ARENA, "caller", "rows"}) > 1
        if found is None or in_two_places or not chosen:
            raise ConfigError(f"inputs and outputs cannot be {','.join(words)!r}", " or ".join(SPELLINGS))
        return found
