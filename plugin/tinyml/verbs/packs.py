# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs without code in the place of a model, for commands that also need the model itself."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinyml.harness import Runner
    from tinyml.pipeline import Compiled
    from tinyml.slots.data_reading import DataModel


def add_of_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--of", type=Path, metavar="MODEL", help="if MODEL is a pack: the model that it was made of"
    )


def pack_of(args: argparse.Namespace, verb: str) -> Path | None:
    """The pack to play, if MODEL is one; then the model that it was made of takes its place."""
    from tinyml.base.errors import ConfigError
    from tinyml.slots.container import SUFFIX

    if args.model is None or args.model.suffix != SUFFIX:
        refuse_of(args)
        return None
    if args.of is None:
        raise ConfigError(
            "a pack does not contain the model that it was made of",
            f"{verb} model.tmodel --of model.onnx, on a machine (--on)",
        )
    if args.board:
        raise ConfigError(
            "a pack is played without Zephyr, on a machine",
            f"{verb} model.tmodel --of model.onnx --on qemu-cortex-m4, without -b",
        )
    pack: Path = args.model
    args.model, args.kernels = args.of, "portable"
    return pack


def refuse_of(args: argparse.Namespace) -> None:
    """--of without a pack is a mistake."""
    from tinyml.base.errors import ConfigError
    from tinyml.slots.container import SUFFIX

    if args.of is not None:
        raise ConfigError(f"--of belongs to packs, and {args.model} is none", f"a {SUFFIX} file as MODEL")


def player_of(pack: Path, machine: str, compiled: Compiled) -> Runner:
    """Where to run instead: the player, with the pack of a compiled model."""
    from tinyml.slots.playing import Player, played_on

    played = played_on(pack, machine)
    check_origin(pack, played.model, compiled)
    return Player(played, compiled.files)


def check_origin(pack: Path, played: DataModel, compiled: Compiled) -> None:
    """Whether a pack was made of the file that was compiled."""
    from tinyml.base.errors import ConfigError

    if played.sha256 != compiled.summary["sha256"]:
        raise ConfigError(f"{pack} was made of another file", "--of, with the file that was packed")
