# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a kernel is to a player: its number, its record, the C functions that call it and check calls."""

from __future__ import annotations

from tinyml.base.lazy_dataclass import dataclass
from tinyml.player.layout import Layout

LAYOUTS = 2
"""Changes of what kernels expect in their records and tables, so far: TINYML_PLAY_LAYOUTS.

1: groups of int8 GRU with Helium. 2: weights of int8 recurrent layers with DSP instructions.
"""


@dataclass(frozen=True)
class Playable:
    """A kernel. ``name`` is what sheets call it: its C function, and its loop if it takes one."""

    number: int
    name: str
    record: Layout
    operands: int
    play: str  # the C function that makes the call
    check: str  # the C function that checks it
    header: str  # that declares the kernel; empty: `play` does the work itself
    sources: tuple[str, ...]  # of runtime/
    named_in_play: bool = False  # `play` calls this kernel and no other
    family: str = ""  # a group of kernels that firmware can name; else the folder of its first file
    layouts: int = 0  # the change (LAYOUTS) since which records and tables are what they are

    @property
    def function(self) -> str:
        """The C function that ``play`` is given."""
        return "" if self.named_in_play or not self.header else self.name.split()[0]

    @property
    def group(self) -> str:
        return self.family or self.sources[0].split("/")[0]

    @property
    def loop(self) -> str:
        return self.name.split()[1] if " " in self.name else ""


def own(
    number: int,
    name: str,
    record: Layout,
    operands: int,
    source: str,
    check: str = "",
    *,
    needs: tuple[str, ...] = ("nest.c",),
    family: str = "",
) -> Playable:
    """A function that only the player has. ``needs``: what its check shares with others."""
    play = f"tinyml_play_{name}"
    checks = f"tinyml_check_{check or name}"
    files = tuple(f"player/{file}" for file in (source, *needs))
    return Playable(number, play, record, operands, play, checks, "", files, family=family)
