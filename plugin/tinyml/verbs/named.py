# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Resolve arguments: a model by file or by its name in an application, a machine by name or by board."""

from __future__ import annotations

import argparse
from pathlib import Path

from tinyml.app import folder
from tinyml.app.manifest import ModelEntry
from tinyml.errors import ConfigError, ModelError, did_you_mean
from tinyml.quantize.request import PATHS
from tinyml.verbs.base import add_app_argument

BOARDS = {
    "native_sim": "host",
    "qemu_cortex_m0": "qemu-cortex-m0",
    "qemu_cortex_m3": "qemu-cortex-m3",
    "mps2/an385": "qemu-cortex-m3",
    "qemu_cortex_m4": "qemu-cortex-m4",
    "mps2/an386": "qemu-cortex-m4",
    "qemu_cortex_m7": "qemu-cortex-m7",
    "mps2/an500": "qemu-cortex-m7",
    "mps3/corstone300/an547": "qemu-cortex-m55",
    "qemu_riscv32": "qemu-riscv32",
}
"""Zephyr boards whose core we can also emulate without Zephyr."""


def add_named_arguments(parser: argparse.ArgumentParser) -> None:
    """`--app` and `--board`, in addition to the model's own arguments."""
    add_app_argument(parser)
    parser.add_argument(
        "-b", "--board", metavar="BOARD", help="a Zephyr board instead of --on: " + ", ".join(BOARDS)
    )


def resolve(args: argparse.Namespace) -> None:
    """Set ``args.model`` to a file and ``args.on`` to a machine, with the application's options."""
    if args.board:
        args.on = machine_of(args.board)
    resolve_model(args)


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
    args.shape = [f"{name}={shape}" for name, shape in entry.shapes.items()] + args.shape
    if args.kernels == "auto" and entry.kernels:
        args.kernels = entry.kernels
    if not args.quantize:
        args.quantize = [
            f"{key}={listed.root / text if key in PATHS else text}" for key, text in entry.quantize.items()
        ]
    if entry.classes and not getattr(args, "classes", ""):
        args.classes = ",".join(entry.classes)
    if entry.frontend and not getattr(args, "frontend", None):
        args.frontend = [f"{key}={value}" for key, value in entry.frontend.given]
    if entry.operators and not getattr(args, "operators", None):
        args.operators = [listed.root / file for file in entry.operators]
    return listed, entry


def machine_of(board: str) -> str:
    """The machine that emulates a board; ``native_sim/native/64`` counts as ``native_sim``."""
    for name, machine in BOARDS.items():
        if board == name or board.startswith(f"{name}/"):
            return machine
    raise ConfigError(
        f"{board!r} is not a board that can be emulated here{did_you_mean(board, BOARDS)}",
        f"`verify` and `profile` run it on the board itself with --serial PORT; emulated are "
        f"{', '.join(BOARDS)}",
    )
