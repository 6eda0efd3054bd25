# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`new`: a complete application from a model, in one step."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base import naming
from tinyml.base.errors import ConfigError, writing
from tinyml.cores.targets import TARGETS
from tinyml.projects import edit, files, folder, manifest, model_files
from tinyml.settings import table
from tinyml.settings.setting import YAML
from tinyml.verbs import make_test
from tinyml.verbs.base import Verb, print_notes
from tinyml.verbs.settings import add_setting, given_settings, words_of

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.pipeline import Compiled
    from tinyml.projects.new_application import Plan, Sample

OFFERED = ("io", "shapes", "outputs", "optimize", "classes", "quantize", "frontend")
"""Settings of the model that the command takes; tinyml.yaml can have all others later."""
DEFAULT_BOARD = "qemu_cortex_m3"
EMULATED = ("qemu_", "native_", "mps2", "mps3")
"""How the names of boards begin that run on this computer."""


class New(Verb):
    """Make a complete application from a model: it builds, runs and tests itself at once.

    Writes a folder with the model, a program that runs it on a sample and prints the decision, settings,
    tests, a README and notes for coding assistants. For Zephyr; with --platformio a PlatformIO project, with
    --bare-metal a Makefile that compiles the model to a library.

      tinyml new wake --model kws.onnx -b nrf52840dk/nrf52840 --classes yes,no,unknown
      tinyml new wake --model kws.onnx --from microphone --frontend kind=micro --frontend step_ms=10
    """

    name = "new"
    help = "make a complete application from a model"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("app", type=Path, metavar="APP", help="the folder to make")
        parser.add_argument(
            "--model", type=Path, required=True, metavar="MODEL", help="the model file, .onnx or .tflite"
        )
        parser.add_argument("--name", metavar="N", help="its prefix in C (default: the file's name)")
        parser.add_argument(
            "-b",
            "--board",
            default="",
            metavar="BOARD",
            help=f"the board, as Zephyr or PlatformIO calls it (default for Zephyr: {DEFAULT_BOARD})",
        )
        kinds = parser.add_mutually_exclusive_group()
        kinds.add_argument("--platformio", action="store_true", help="a PlatformIO project")
        kinds.add_argument("--bare-metal", action="store_true", help="a Makefile, without a framework")
        parser.add_argument(
            "--from",
            dest="source",
            choices=("microphone", "accelerometer", "camera", "csv"),
            default="",
            help="where inputs come from (Zephyr; default: one sample). Boards without such a device "
            "replay a recording; csv: every row of data.csv",
        )
        parser.add_argument(
            "--platform", default="", metavar="P", help="PlatformIO: the board's platform, such as ststm32"
        )
        parser.add_argument(
            "--framework", default="", metavar="F", help="PlatformIO: arduino, zephyr or another one"
        )
        parser.add_argument(
            "--target",
            default="",
            metavar="T",
            help=f"the core, without a board: one of {', '.join(TARGETS)} (default: cortex-m3)",
        )
        parser.add_argument(
            "--input",
            type=Path,
            metavar="X.npz",
            help="inputs for the sample and the test (default: generated)",
        )
        for key in OFFERED:
            add_setting(parser, key, ("int8",) if key == "io" else None, default="")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.projects.new_application import application_files
        from tinyml.projects.sources import check_source

        if args.app.exists() and (not args.app.is_dir() or any(args.app.iterdir())):
            raise ConfigError(f"{args.app} already exists", "another folder, or `tinyml add` in this one")
        model = model_files.existing_model(args.model)
        with _staged(args.app) as staging:
            app = folder.Application(staging)
            copies = _copies(model, staging)
            name = args.name or naming.model_name(model)
            naming.check_name(name)
            quantize, more = model_files.calibration(words_of(args, "quantize"), app, name)
            files.replace_all({place: source.read_bytes() for place, source in (copies | more).items()})
            given = given_settings(args, table.settings(YAML))
            given |= {"quantize": quantize} if quantize else {}
            entry = manifest.ModelEntry(name, f"models/{_plain_name(model)}", **given)
            plan = _plan(args, entry)
            compiled = _compiled(app, entry, plan.target)
            _check_memory(compiled, app, entry, plan)
            if plan.source:
                check_source(plan.source, compiled.summary)
            sample = _sample(app, entry, args.input)
            written = application_files(plan, compiled.summary, sample, compiled.graph.labels, sample.rows)
            contents: dict[Path, bytes | None] = {staging / path: data for path, data in written.items()}
            if plan.kind != "bare-metal":
                contents[app.manifest_path] = edit.add_model("", entry).encode()
            if plan.kind == "zephyr":
                contents[app.prj_conf_path] = edit.switch_on(written["prj.conf"].decode()).encode()
                boards = [plan.board] if plan.board else []
                place = make_test.place_for(app, name)
                contents |= make_test.contents(app, entry, args.input, place, platforms=boards)
            files.replace_all(contents)
        _report(console, args.app, plan, compiled)
        return 0


@contextmanager
def _staged(app: Path) -> Iterator[Path]:
    """A folder beside ``app`` that takes its place at the end; after an error nothing is left."""
    app = app.parent.resolve() / app.name
    staging = app.parent / f".{app.name}.new-{os.getpid()}"
    with writing(app):
        staging.mkdir(parents=True)
    try:
        yield staging.resolve()
        with writing(app):
            if app.exists():
                app.rmdir()  # it is empty
            staging.rename(app)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _copies(model: Path, staging: Path) -> dict[Path, Path]:
    """The model and its external data, by the place to which they are copied."""
    from tinyml.pipeline import read_model

    copy = staging / "models" / _plain_name(model)
    read = [Path(path).resolve() for path in read_model(model).files]
    return {copy: model} | model_files.external_data(model, read, copy)


def _plain_name(model: Path) -> str:
    """The name of the copy: make, and commands that somebody types, split names at blanks."""
    return model.name if re.fullmatch(r"[\w.+-]+", model.name, re.ASCII) else f"model{model.suffix}"


def _plan(args: argparse.Namespace, entry: manifest.ModelEntry) -> Plan:
    from tinyml.base import c
    from tinyml.harness.zephyr.boards import find_board
    from tinyml.projects.new_application import BARE_METAL, PLATFORMIO, ZEPHYR, Plan

    kind = PLATFORMIO if args.platformio else BARE_METAL if args.bare_metal else ZEPHYR
    if kind != PLATFORMIO and (args.platform or args.framework):
        raise ConfigError("--platform and --framework are PlatformIO's", "--platformio, or leave them out")
    if kind == PLATFORMIO and args.board and not (args.platform and args.framework):
        raise ConfigError(
            f"PlatformIO also needs the platform and the framework of {args.board}",
            f"`pio boards {args.board}` prints both: --platform ststm32 --framework arduino, for example",
        )
    if args.source and kind != ZEPHYR:
        raise ConfigError(f"--from {args.source} makes an application for Zephyr", "leave out one of them")
    board = args.board or (DEFAULT_BOARD if kind == ZEPHYR and not args.target else "")
    target = args.target or (find_board(board).target if board else "cortex-m3")
    flags = {key: table.settings()[key].flag for key in OFFERED}
    words = [f" {flags[key]} {shlex.quote(word)}" for key in OFFERED for word in words_of(args, key)]
    name = c.identifier(args.app.resolve().name)
    place = (target, board, args.platform, args.framework)
    return Plan(kind, name, entry.name, entry.file, *place, "".join(words), args.source)


def _compiled(app: folder.Application, entry: manifest.ModelEntry, target: str) -> Compiled:
    from tinyml.pipeline import compile_model

    return compile_model(entry.path(app.root), entry.options(app.root, target=target))


def _check_memory(
    compiled: Compiled, app: folder.Application, entry: manifest.ModelEntry, plan: Plan
) -> None:
    """Refuse a model that the board has no room for, with the settings that would fit."""
    from tinyml.cost.estimate import estimate_for
    from tinyml.harness.zephyr.boards import find_board
    from tinyml.report import budget
    from tinyml.report.ways_out import pricing
    from tinyml.settings.setting import COMMAND

    if not plan.board:
        return
    board, found = find_board(plan.board), estimate_for(compiled)
    options = entry.options(app.root, target=plan.target)
    budget.check(
        compiled.summary,
        ram=[budget.Limit(board.ram_bytes, plan.board)] if board.ram_bytes else [],
        flash=[budget.Limit(board.flash_bytes, plan.board)] if board.flash_bytes else [],
        flash_bytes=found.flash_bytes if found else None,
        ways=pricing(entry.path(app.root), options, compiled, COMMAND, rows=False),
    )


def _sample(app: folder.Application, entry: manifest.ModelEntry, given: Path | None) -> Sample:
    """The first input, and the output that the model's C computes from it on this machine."""
    from tinyml.datasets.arrays import real
    from tinyml.pipeline import compile_model
    from tinyml.projects.new_application import Sample

    options = entry.options(app.root, target="host", kernels="portable", npu="")
    compiled = compile_model(entry.path(app.root), options)
    golden = make_test.golden_of(compiled.graph, compiled.files, given)
    first = compiled.graph.tensors[compiled.graph.outputs[0]]
    origin = f"the first of {given.name}" if given else "which `tinyml new` made up"
    taken = compiled.graph.tensors[compiled.graph.inputs[0]]
    rows = [real(inputs[0], taken) for inputs in golden.inputs]
    return Sample(golden.inputs[0], real(golden.outputs[0][0], first).reshape(-1), origin, rows)


def _report(console: Console, app: Path, plan: Plan, compiled: Compiled) -> None:
    from tinyml.projects.new_application import BARE_METAL, PLATFORMIO, ZEPHYR

    summary = compiled.summary
    ram = summary["arena_bytes"] + summary["state_bytes"]
    console.print(
        f"made {app}: {plan.name} for {plan.board or plan.target} needs {ram:,} bytes of RAM and "
        f"{summary['weights_bytes']:,} bytes of weights",
        markup=False,
        soft_wrap=True,
    )
    print_notes(console, compiled.graph.notes)
    place = shlex.quote(str(app))
    if plan.kind == PLATFORMIO:
        command = f"pio run -d {place} -e native -t exec"
    elif plan.kind == BARE_METAL:
        command = f"make -C {place} run"
    else:
        board = plan.board or DEFAULT_BOARD
        start = "west build -t run" if board.startswith(EMULATED) else "west flash"
        command = f"west build -b {board} {place} && {start}"
    if plan.kind == ZEPHYR:
        for line in _beforehand(plan.board or DEFAULT_BOARD):
            console.print(line, markup=False, soft_wrap=True)
    console.print(f"Next: {command}", markup=False, soft_wrap=True)


def _beforehand(board: str) -> list[str]:
    """What a build for Zephyr still needs here: Zephyr, or modules that its manifest does not name."""
    from tinyml.base.errors import ToolError
    from tinyml.harness.zephyr.site import OUR_BOARDS, find_site

    try:
        site = find_site()
    except ToolError as error:
        return [
            f"A build needs Zephyr: {error.message} ({error.hint}). "
            "`tinyml new --bare-metal` makes a program that needs a compiler only."
        ]
    module, needed = "$(tinyml zephyr-module)", []
    if site.module is None:
        needed.append((site.our_module, module))
    if board.startswith(OUR_BOARDS):
        needed.append((site.our_module / "boards", f"{module}/boards"))
    given = os.environ.get("EXTRA_ZEPHYR_MODULES", "").split(";")
    missing = [text for path, text in needed if str(path) not in given]
    if not missing:
        return []
    return [
        "Your west manifest does not name what the build needs. Once in each terminal:",
        f'  export EXTRA_ZEPHYR_MODULES="{";".join(missing)}"',
    ]
