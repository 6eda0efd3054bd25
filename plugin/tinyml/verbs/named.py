# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Resolve arguments: a model by file or by its name in an application, a machine by name or by board."""

from __future__ import annotations

import argparse
from pathlib import Path

from tinyml.base.errors import ConfigError, ModelError, did_you_mean
from tinyml.cores.boards import Board, emulated_boards, known_board, similar_board
from tinyml.cores.machines import MACHINES, find_machine
from tinyml.projects import folder
from tinyml.projects.manifest import ModelEntry
from tinyml.verbs.base import add_app_argument
from tinyml.verbs.settings import add_from_entry


def add_named_arguments(parser: argparse.ArgumentParser) -> None:
    """`--app` and `--board`, in addition to the model's own arguments."""
    add_app_argument(parser)
    parser.add_argument(
        "-b",
        "--board",
        metavar="BOARD",
        help="the core, memory and clock of this board, by Zephyr's name or PlatformIO's id: a well-known "
        "one (docs/KNOWN_BOARDS.md), or any board of the west workspace",
    )


def resolve(args: argparse.Namespace) -> tuple[Board | None, ModelEntry | None]:
    """Set ``args.model`` to a file, with the application's options, and what --board determines.

    An emulated board is measured on its machine. For hardware, ``args.target`` is the board's core, and
    ``args.on`` may be a machine with the same core. Returns the board, and the model's entry in tinyml.yaml
    if the model was given by its name there.
    """
    board = resolve_board(args)
    if board is not None:
        if board.machine and not args.on:
            args.on = board.machine
        _check_machine(args.on, board)
    listed = resolve_model(args)
    return board, listed[1] if listed else None


def resolve_board(args: argparse.Namespace) -> Board | None:
    """The board of --board, if there is one; its core and its clock become the defaults."""
    from tinyml.harness.zephyr.boards import find_board

    if not args.board:
        return None
    board = find_board(args.board)
    args.target = board.target
    args.mhz = args.mhz or (None if board.machine else board.mhz)
    return board


def _check_machine(machine: str | None, board: Board) -> None:
    if machine and find_machine(machine).target.name != board.target:
        raise ConfigError(
            f"{machine} does not have the core of {board.name}, {board.target}",
            f"another --on{same_core(board.target)}, or no --on: the costs are then estimated",
        )


def same_core(target: str) -> str:
    """``: qemu-cortex-m4`` if there is a machine with a core, to put after a word."""
    names = [name for name, machine in MACHINES.items() if machine.target.name == target]
    return f": {' or '.join(names)}" if names else ""


def resolve_model(args: argparse.Namespace) -> tuple[folder.Application, ModelEntry] | None:
    """Set ``args.model`` to a file, and the options that the application has for it.

    Returns the application and its entry if the model was given by its name there.
    """
    if args.model.exists() or (args.model.suffix and args.app is None):
        return None
    listed = folder.find_application(args.app, Path.cwd())
    entry = listed.manifest().find(str(args.model))
    if entry is None:
        names = ", ".join(model.name for model in listed.manifest().models) or "no model"
        raise ModelError(
            f"there is no file {args.model}, and no model of that name in {listed.manifest_path}",
            f"it has {names}",
        )
    args.model = entry.path(listed.root)
    args.name = args.name or entry.name
    add_from_entry(args, entry, listed.root)
    return listed, entry


def machine_of(board: str) -> str:
    """The machine that emulates a board; ``native_sim/native/64`` counts as ``native_sim``."""
    known = known_board(board) or similar_board(board)
    emulated = emulated_boards()
    if known is not None and known.machine:
        return known.machine
    raise ConfigError(
        f"{board!r} is not a board that can be emulated here{did_you_mean(board, emulated)}",
        f"`verify` and `profile` run it on the board itself with --serial PORT; emulated are "
        f"{', '.join(emulated)}",
    )
