# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Well-known boards: core, memory and clock, without a west workspace.

``harness.zephyr.boards.find_board`` also knows every board of a workspace.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Board:
    """A board as far as a model's costs depend on it. What is not known is None, or empty."""

    name: str  # Zephyr's, with its qualifiers
    target: str
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    mhz: float | None = None
    title: str = ""
    chip: str = ""  # as in cost/energy.yaml
    platformio: str = ""  # PlatformIO's id
    machine: str = ""  # the machine that emulates this board, for emulated ones
    note: str = ""

    def __str__(self) -> str:
        """``nrf52840dk/nrf52840: cortex-m4 at 64 MHz, 256 KiB of RAM, 1024 KiB of flash``."""
        clock = f" at {self.mhz:g} MHz" if self.mhz else ""
        sizes = ((self.ram_bytes, "RAM"), (self.flash_bytes, "flash"))
        memory = [f"{size / 1024:g} KiB of {kind}" for size, kind in sizes if size]
        return f"{self.name}: {', '.join([self.target + clock, *memory])}"

    def names(self) -> tuple[str, ...]:
        """What users call it: Zephyr's name in its current and older form, PlatformIO's id."""
        older = self.name.replace("/", "_")
        return tuple(dict.fromkeys(name for name in (self.name, older, self.platformio) if name))


@cache
def known_boards() -> tuple[Board, ...]:
    """All boards of ``boards.yaml``."""
    entries = yaml.safe_load((Path(__file__).parent / "boards.yaml").read_text(encoding="utf-8"))["boards"]
    return tuple(_board(**entry) for entry in entries)


def _board(*, ram_kib: int | None = None, flash_kib: int | None = None, **facts: str) -> Board:
    sizes = {
        "ram_bytes": None if ram_kib is None else ram_kib * 1024,
        "flash_bytes": None if flash_kib is None else flash_kib * 1024,
    }
    return Board(**facts, **sizes)  # type: ignore[arg-type]


def known_board(name: str) -> Board | None:
    """The board of the table with this name, PlatformIO's id, or a name that is short for one board only.

    A revision (``@1.0``) is ignored. Raises ConfigError if the name is short for several boards.
    """
    wanted = _without_revision(name)
    for board in known_boards():
        if wanted in board.names():
            return board
    longer = [board for board in known_boards() if board.name.startswith(f"{wanted}/")]
    if len(longer) > 1:
        raise ConfigError(f"{name!r} is short for several boards", " or ".join(b.name for b in longer))
    return longer[0] if longer else None


def similar_board(name: str) -> Board | None:
    """The board of which ``name`` is a variant: nrf5340dk/nrf5340/cpuapp for nrf5340dk/nrf5340/cpuapp/ns."""
    wanted = _without_revision(name)
    return next((board for board in known_boards() if wanted.startswith(f"{board.name}/")), None)


def _without_revision(name: str) -> str:
    board, at, rest = name.partition("@")
    return board + ("/" + rest.partition("/")[2] if at and "/" in rest else "")


def unknown_board(name: str, hint: str) -> ConfigError:
    """The error about a board that nobody knows, with the most similar name."""
    every = [word for board in known_boards() for word in board.names()]
    return ConfigError(f"the board {name!r} is not known{did_you_mean(name, every)}", hint)


def emulated_boards() -> dict[str, str]:
    """Zephyr's names of boards that QEMU emulates, and our machines for them."""
    return {board.name: board.machine for board in known_boards() if board.machine}
