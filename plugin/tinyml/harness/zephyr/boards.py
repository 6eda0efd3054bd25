# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Any board, by its name: from our table, or from the devicetree and Kconfig of the west workspace."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import ConfigError, ToolError
from tinyml.cores.boards import Board, known_board, similar_board, unknown_board
from tinyml.harness.zephyr import board_check, kconfig
from tinyml.harness.zephyr.devicetree import Devicetree
from tinyml.harness.zephyr.site import Site, find_site

ARCHITECTURES = {"ARM": "arm", "ARM64": "arm64", "RISCV": "riscv", "XTENSA": "xtensa", "ARC": "arc"}
"""Kconfig's name and the folder in Zephyr's ``dts``."""


def find_board(name: str) -> Board:
    """The board called ``name`` by Zephyr or PlatformIO.

    Well-known boards need nothing but our table; all others are read from the west workspace. Raises
    ConfigError with a similar name if nobody knows the board.
    """
    if (board := known_board(name)) is not None:
        return board
    try:
        site = find_site()
    except ToolError:
        if (board := similar_board(name)) is not None:
            return board
        raise unknown_board(
            name,
            "docs/KNOWN_BOARDS.md lists the boards that are known without Zephyr; every other board of "
            "Zephyr's is known inside a west workspace",
        ) from None
    return workspace_board(site, name)


def workspace_board(site: Site, name: str) -> Board:
    """A board of the west workspace, from its devicetree and the symbols that its chip selects."""
    described = board_check.find_board(site, name)
    words = name.partition("@")[0].split("/")
    source = _source(described.folder, words, described.socs)
    start = _symbols(words[0], source, described.socs)
    symbols = kconfig.selected(_kconfig_folders(site.zephyr, described.folder), start)
    arch = next((folder for symbol, folder in ARCHITECTURES.items() if symbol in symbols), "arm")
    tree = Devicetree(site.zephyr, source, arch)
    return Board(
        name,
        kconfig.target(symbols),
        tree.chosen_bytes("zephyr,sram"),
        tree.chosen_bytes("zephyr,flash"),
        tree.cpu_mhz(),
    )


def _source(folder: Path, words: list[str], socs: list[str]) -> Path:
    """The .dts file of a board; qualifiers that the board has only one of may be missing in either name."""
    files = {path.stem: path for path in sorted(folder.glob("*.dts"))}
    shorter = [word for word in words[1:] if word not in socs]
    full = "_".join(words)
    for wanted in (full, "_".join([words[0], *shorter])):
        if wanted in files:
            return files[wanted]
    longer = [stem for stem in files if stem.startswith(f"{full}_")]
    if len(longer) == 1:
        return files[longer[0]]
    raise ConfigError(
        f"Zephyr's board {words[0]} has no devicetree for {'/'.join(words)!r}",
        f"its devicetrees: {', '.join(longer or files) or 'none'}",
    )


def _symbols(board: str, source: Path, socs: list[str]) -> set[str]:
    """The Kconfig symbols of a board, which select everything else: BOARD_X, BOARD_X_SOC, BOARD_X_SOC_CPU."""
    words = [word for word in source.stem.removeprefix(board).split("_") if word]
    if len(socs) == 1 and socs[0] not in words:
        words.insert(0, socs[0])
    names = ["_".join([board, *words[:count]]) for count in range(len(words) + 1)]
    return {f"BOARD_{name.upper()}" for name in names}


def _kconfig_folders(zephyr: Path, folder: Path) -> list[Path]:
    """Those of the board, of Zephyr's chips, and of the chips of the module that has the board."""
    chips = [parent / "soc" for parent in folder.parents[:4]]
    return list(dict.fromkeys([folder, zephyr / "soc", *(place for place in chips if place.is_dir())]))
