"""Where `verify` and `profile` run a model: on a machine, in a Zephyr image, or on hardware."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import add_app_argument
from tinyml.verbs.compile import Compile, options_from
from tinyml.verbs.named import machine_of, resolve_model

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.harness import Place
    from tinyml.harness.zephyr import Site, ZephyrPlace
    from tinyml.pipeline import Compiled, Options


@dataclass(frozen=True)
class Placed:
    """A place, and the options that the model is compiled with for it."""

    place: Place
    options: Options

    def check(self, compiled: Compiled) -> None:
        """A build of Zephyr compiles by itself: that must have given what was compiled here."""
        from tinyml.errors import ToolError
        from tinyml.harness.zephyr import ZephyrPlace

        if isinstance(self.place, ZephyrPlace):
            name = f"{compiled.name}.c"
            if (self.place.build.generated / name).read_text(encoding="utf-8") != compiled.files[name]:
                raise ToolError(
                    f"the build generated another {name} than this command",
                    "one version of west-tinyml: the one in the workspace and this one are different",
                )


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """`--app`, `--board` and what belongs to it, beside `--on` and the model's own arguments."""
    add_app_argument(parser)
    group = parser.add_argument_group("in a Zephyr image, instead of --on")
    group.add_argument("-b", "--board", metavar="BOARD", help="build for this board; run it in its emulator")
    group.add_argument("--serial", metavar="PORT", help="flash the board; talk to it on this serial port")
    group.add_argument("--baud", type=int, default=115200, metavar="N", help="default: %(default)s")
    group.add_argument("--no-flash", action="store_true", help="the board has the image already")
    group.add_argument("--timeout", type=float, default=300, metavar="S", help="seconds for one run, at most")
    group.add_argument(
        "-d", "--build-dir", type=Path, metavar="DIR", help="keep the build there, and use it again"
    )
    group.add_argument(
        "--cmake", action="append", default=[], metavar="-DX=Y", help="an option for the build (repeatable)"
    )


@contextmanager
def placed(args: argparse.Namespace, console: Console, profiled: bool = False) -> Iterator[Placed]:
    """Find the model and the place. What is built for it is gone afterwards, unless --build-dir keeps it."""
    from tinyml.errors import ConfigError, ToolError
    from tinyml.harness import Standalone, find_machine
    from tinyml.harness.zephyr import find_site

    if args.serial and not args.board:
        raise ConfigError("--serial needs the name of the board", "-b BOARD; `west boards` lists them")
    resolve_model(args)
    if args.board:
        try:
            site = find_site()
        except ToolError as error:
            if args.serial:
                raise
            args.on = machine_of(args.board)
            console.print(
                f"no Zephyr image: {error.message}. On {args.on} without Zephyr instead",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        else:
            with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
                yield _in_zephyr(args, console, site, Path(scratch), profiled)
            return
    yield Placed(Standalone(args.on), options_from(args, find_machine(args.on).target.name))


def _in_zephyr(
    args: argparse.Namespace, console: Console, site: Site, scratch: Path, profiled: bool
) -> Placed:
    folder = (args.build_dir or scratch).resolve()
    console.print(f"building with Zephyr {site.version} for {args.board}", markup=False, style="dim")
    place = _built(args, site, folder, profiled)
    parser = argparse.ArgumentParser()
    compile_verb = Compile()
    compile_verb.add_arguments(parser)
    told = parser.parse_args(place.build.compile_arguments)
    args.model = told.model
    return Placed(place, options_from(told, told.target))


def _built(args: argparse.Namespace, site: Site, folder: Path, profiled: bool) -> ZephyrPlace:
    from tinyml.app.edit import FULL_LIBC
    from tinyml.app.manifest import ModelEntry
    from tinyml.harness.zephyr import Build, Port, ZephyrPlace, write_application
    from tinyml.package.twister import needs_maths
    from tinyml.pipeline import compile_model
    from tinyml.quantize.request import parse_items
    from tinyml.verbs.shapes import parse_shapes

    here = compile_model(args.model, options_from(args, "host"))
    entry = ModelEntry(
        here.name,
        str(args.model),
        args.kernels,
        parse_shapes(args.shape),
        quantize=parse_items(args.quantize, "--quantize") if args.quantize else {},
    )
    settings = [f"{FULL_LIBC}=y"] if needs_maths(here.files[f"{here.name}.c"], here.summary) else []
    if profiled:
        settings += ["CONFIG_TINYML_PROFILING=y", f"CONFIG_TINYML_PROFILING_LAYERS={len(here.selected)}"]
    app = folder / "app"
    write_application(app, entry, settings)
    build = Build(site, args.board, app, folder / "build", here.name)
    build.make(args.cmake)
    port = Port(args.serial, args.baud, not args.no_flash) if args.serial else None
    return ZephyrPlace(build, port, args.timeout)
