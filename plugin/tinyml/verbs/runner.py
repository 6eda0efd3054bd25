# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where `verify` and `profile` run a model: on a machine, in a Zephyr image, or on hardware."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import MACHINES
from tinyml.verbs.base import add_app_argument
from tinyml.verbs.compile import Compile
from tinyml.verbs.named import machine_of, resolve_model
from tinyml.verbs.settings import options_from

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.harness import Runner
    from tinyml.harness.zephyr import Build, Port
    from tinyml.pipeline import Compiled, Options


@dataclass(frozen=True)
class Placed:
    """A place, and the options that the model is compiled with for it."""

    place: Runner
    options: Options

    def check(self, compiled: Compiled) -> None:
        """Zephyr's build runs its own compiler: its result must equal what was compiled here."""
        from tinyml.base.errors import ToolError
        from tinyml.harness.zephyr import ZephyrPlace

        if isinstance(self.place, ZephyrPlace):
            name = f"{compiled.name}.c"
            if (self.place.build.generated / name).read_text(encoding="utf-8") != compiled.files[name]:
                raise ToolError(
                    f"the build generated a different {name} than this command",
                    "use one version of west-tinyml: the workspace has a different one",
                )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """`--on` and `--input`, for verbs that run a model with the user's inputs."""
    add_on_argument(parser)
    parser.add_argument(
        "--input", type=Path, metavar="DATA", help="inputs: .npz, .npy, .csv or a folder; N rows are N runs"
    )


def add_on_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on", default="host", choices=MACHINES, help="the machine to run on (default: %(default)s)"
    )


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """`--app`, `--board` and its options, in addition to `--on` and the model's own arguments."""
    add_app_argument(parser)
    group = parser.add_argument_group("in a Zephyr image, instead of --on")
    group.add_argument("-b", "--board", metavar="BOARD", help="build for this board; run it in its emulator")
    group.add_argument(
        "--serial", metavar="PORT", help="flash the board and communicate over this serial port"
    )
    group.add_argument("--baud", type=int, default=115200, metavar="N", help="default: %(default)s")
    group.add_argument("--no-flash", action="store_true", help="use the image that is already on the board")
    group.add_argument(
        "--timeout", type=float, default=300, metavar="S", help="time limit of one run, in seconds"
    )
    group.add_argument(
        "-d", "--build-dir", type=Path, metavar="DIR", help="keep the build in this folder and reuse it"
    )
    group.add_argument(
        "--cmake", action="append", default=[], metavar="-DX=Y", help="an option for the build (repeatable)"
    )


@contextmanager
def placed(args: argparse.Namespace, console: Console, profiled: bool = False) -> Iterator[Placed]:
    """Find the model and the place. Builds are deleted afterwards unless --build-dir keeps them."""
    from tinyml.base.errors import ConfigError, ToolError
    from tinyml.harness import Standalone, find_machine
    from tinyml.harness.zephyr import find_site

    if args.serial and not args.board:
        raise ConfigError("--serial requires the name of the board", "-b BOARD; `west boards` lists them")
    if profiled and args.board and args.board.split("/")[0] == "native_sim":
        raise ConfigError(
            f"{args.board} cannot count cycles: its clock does not advance while code runs",
            "a QEMU board, --on qemu-cortex-m3, or hardware",
        )
    listed = resolve_model(args)
    if args.board:
        try:
            site = find_site()
        except ToolError as error:
            if args.serial:
                raise
            args.on = machine_of(args.board)
            console.print(
                f"no Zephyr image: {error.message}. Running on {args.on} without Zephyr instead",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        else:
            from tinyml.harness.zephyr.board_check import find_board
            from tinyml.verbs.runner_image import build_image

            if not args.cmake and "BOARD_ROOT" not in os.environ:  # which may add boards
                find_board(site, args.board)
            port = _port(args, console)
            if port is None and not site.has_emulator(args.board):
                raise ConfigError(
                    f"{args.board} is hardware: Zephyr has no emulator for it",
                    "--serial PORT runs the model on the board itself; without one, --on "
                    "or -b with an emulated board of the same core",
                )
            console.print(f"building with Zephyr {site.version} for {args.board}", markup=False, style="dim")
            with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
                folder = (args.build_dir or Path(scratch)).resolve()
                build = build_image(args, listed, site, folder, profiled, console)
                yield _in_image(args, build, port)
            return
    options = options_from(args, find_machine(args.on).target.name)
    yield Placed(Standalone(args.on, checked=bool(options.operators)), options)  # C that is not ours


def _port(args: argparse.Namespace, console: Console) -> Port | None:
    """The board's port, checked before the build rather than after it."""
    from tinyml.harness.zephyr import Port

    if not args.serial:
        return None
    port = Port(args.serial, args.baud, not args.no_flash)
    if remark := port.check():
        console.print(remark, style="yellow", markup=False, soft_wrap=True)
    return port


def _in_image(args: argparse.Namespace, build: Build, port: Port | None) -> Placed:
    """Options to compile the model here exactly as the build did."""
    from tinyml.harness.zephyr import ZephyrPlace

    place = ZephyrPlace(build, port, args.timeout)
    parser = argparse.ArgumentParser()
    compile_verb = Compile()
    compile_verb.add_arguments(parser)
    told = parser.parse_args(build.compile_arguments)
    args.model = told.model
    return Placed(place, options_from(told, told.target))
