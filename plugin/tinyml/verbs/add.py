# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`add`: make a model part of an application."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

from tinyml import naming, pinned
from tinyml.app import edit, files, folder, keys, manifest, placing
from tinyml.errors import ConfigError, TinymlError
from tinyml.goals import BALANCED
from tinyml.lock import locked
from tinyml.quantize import request
from tinyml.targets import TARGETS, find_target
from tinyml.verbs import make_test
from tinyml.verbs.base import Verb, add_app_argument, add_shape_argument, print_notes
from tinyml.verbs.compile import (
    accelerator,
    add_classes_argument,
    add_frontend_argument,
    add_npu_argument,
    add_operators_argument,
    add_optimize_argument,
    add_quantize_argument,
    class_names,
)
from tinyml.verbs.shapes import parse_shapes

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.features.settings import FrontEnd
    from tinyml.pipeline import Compiled


class Add(Verb):
    """Make a model part of an application.

    Checks that the model compiles, lists it in the application's tinyml.yaml and switches
    CONFIG_TINYML on in prj.conf. After that, `west build` compiles it like any other source.

    tinyml.yaml refers to the model by a relative path if it is in the same git repository or west
    workspace as the application; otherwise the model is copied to the application's folder models/.
    """

    name = "add"
    help = "make a model part of an application"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="MODEL", help="the model file, .onnx or .tflite")
        add_app_argument(parser)
        parser.add_argument("--name", metavar="N", help="its prefix in C (default: the file's name)")
        parser.add_argument(
            "--target",
            default="cortex-m3",
            metavar="T",
            help="check the model and print its sizes for this core; the build uses the board's core. "
            f"One of: {', '.join(TARGETS)} (default: %(default)s)",
        )
        parser.add_argument(
            "--kernels", choices=keys.KERNELS, help="write this choice of kernels into tinyml.yaml"
        )
        add_optimize_argument(parser, None)
        parser.add_argument("--io", choices=keys.IO, help=f"write this into tinyml.yaml: {keys.KEYS['io']}")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace the model of this name and keep its settings; prints what differs",
        )
        add_shape_argument(parser)
        add_quantize_argument(parser)
        add_frontend_argument(parser)
        add_operators_argument(parser)
        add_npu_argument(parser)
        add_classes_argument(parser)
        parser.add_argument(
            "--test", action="store_true", help="also write a Twister test for it, as `test` does"
        )
        parser.add_argument(
            "--input", type=Path, metavar="X.npz", help="for --test: inputs, and outputs if it has them"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        if args.input and not args.test:
            raise ConfigError("--input requires --test, which writes a test with these inputs", "add --test")
        app = folder.find_application(args.app, Path.cwd())
        target = find_target(args.target)
        model = placing.existing_model(args.model)
        name = args.name or naming.model_name(model)
        listed = app.manifest()
        replaced = listed.find(name) if args.replace else None
        if args.replace and replaced is None:
            raise ConfigError(f"there is no model called {name!r} to replace", "--name, or no --replace")
        others = manifest.Manifest(tuple(entry for entry in listed.models if entry is not replaced))
        _refuse_clash(others, name, model, app)
        file, copied = placing.place(model, app)
        settings, copies = placing.calibration(args.quantize, app)
        entry = manifest.ModelEntry(
            name,
            file,
            args.kernels,
            parse_shapes(args.shape),
            quantize=settings,
            frontend=_frontend(args.frontend),
            operators=placing.operators(args.operators, app),
            classes=class_names(args.classes),
            optimize=args.optimize,
            io=args.io,
            npu=accelerator(args),
        )
        if replaced is not None:
            entry = replace(
                replaced,
                file=file,
                kernels=entry.kernels or replaced.kernels,
                shapes=entry.shapes or replaced.shapes,
                quantize=entry.quantize or replaced.quantize,
                frontend=entry.frontend or replaced.frontend,
                operators=entry.operators or replaced.operators,
                classes=entry.classes or replaced.classes,
                optimize=entry.optimize or replaced.optimize,
                io=entry.io or replaced.io,
                npu=accelerator(args) if args.npu else replaced.npu,
            )
        if copied:
            copies[app.root / file] = model
        wanted = request.from_items(args.quantize, "--quantize", Path())
        if wanted is None and replaced is not None:
            wanted = replaced.request(app.root)  # as the build will
        try:
            compiled = _compile(model, app, entry, target.name, wanted, must_move=copied)
        except TinymlError as error:
            if wanted is not None and not args.quantize:
                kept = f"{app.manifest_path.name} has `quantize:` for {name}, which --replace keeps"
                error.hint = f"{error.hint}; {kept}" if error.hint else kept
            raise
        pinned.check(compiled.summary, entry.interface)
        differences = _differences(app, replaced, compiled)
        tests: dict[Path, bytes | None] = {}
        if args.test:
            place = make_test.place_for(app, name)
            make_test.refuse_existing(
                place,
                f"add the model without --test; `west tinyml test {name} --force` then replaces the test",
            )
            tests = make_test.contents(app, entry, args.input, place, model, wanted)
        with locked(app.root):  # another `add` may have changed the files since they were read
            now = app.manifest()
            if now != listed and (replaced is not None or copies):
                raise ConfigError(
                    f"{app.manifest_path} has changed since this command began; it changed nothing",
                    "run the command again",
                )
            _refuse_clash(manifest.Manifest(tuple(m for m in now.models if m != replaced)), name, model, app)
            files.replace_all(_changes(app, entry, replaced, copies) | tests)
        _report(console, app, entry, compiled, copied)
        for line in differences:
            console.print(f"changed: {line}", markup=False, soft_wrap=True)
        if args.test:
            make_test.said(console, app, place)
        return 0


def _frontend(items: list[str]) -> FrontEnd | None:
    from tinyml.features.settings import from_items

    return from_items(items, "--frontend")


def _refuse_clash(listed: manifest.Manifest, name: str, model: Path, app: folder.Application) -> None:
    naming.check_name(name)
    known = listed.find(name)
    if known is not None:
        if known.path(app.root).resolve() == model:
            raise ConfigError(
                f"{known.file} is already in {app.manifest_path.name}, as {name!r}",
                f"nothing to do: the build uses it. `west tinyml remove {name}` removes it",
            )
        raise ConfigError(
            f"there is already a model called {name!r}, from {known.file}",
            "another name with --name, or remove the other model first",
        )
    naming.check_unique([*(entry.name for entry in listed.models), name])


def _compile(
    model: Path,
    app: folder.Application,
    entry: manifest.ModelEntry,
    target: str,
    wanted: request.Request | None,
    must_move: bool,
) -> Compiled:
    """Compile the model as the build will."""
    from tinyml.pipeline import Options, compile_model
    from tinyml.workspace import find_cmsis_nn

    options = Options(
        name=entry.name,
        target=target,
        kernels=entry.kernels or "auto",
        shapes={name: tuple(map(int, shape.split("x"))) for name, shape in entry.shapes.items()},
        quantize=wanted,
        frontend=entry.frontend,
        operators=tuple(app.root / file for file in entry.operators),
        classes=entry.classes,
        npu=entry.npu,
        cmsis_nn=find_cmsis_nn() is not None,
        optimize=entry.optimize or BALANCED.name,
        io=entry.pipeline_io(),
    )
    if not must_move:
        return compile_model(model, options)
    try:
        with tempfile.TemporaryDirectory() as alone:  # does it still work without the files next to it?
            moved = Path(alone) / model.name
            copyfile(model, moved)
            return compile_model(moved, options)
    except TinymlError:
        compile_model(model, options)  # if the model itself is to blame, with its own path in the message
        raise ConfigError(
            f"{model} is outside the application's repository and would be copied, but it has data in other "
            "files",
            "copy all of these files into the application, and add the model from there",
        ) from None


def _differences(
    app: folder.Application, replaced: manifest.ModelEntry | None, compiled: Compiled
) -> list[str]:
    """How the interface differs from that of the model before, if its file is still there."""
    if replaced is None or not replaced.path(app.root).is_file():
        return []
    wanted = replaced.request(app.root)
    before = _compile(
        replaced.path(app.root), app, replaced, compiled.summary["target"], wanted, must_move=False
    )
    return pinned.differences(before.summary, compiled.summary) or ["nothing in the interface"]


def _changes(
    app: folder.Application,
    entry: manifest.ModelEntry,
    replaced: manifest.ModelEntry | None,
    copies: dict[Path, Path],
) -> dict[Path, bytes | None]:
    listed = files.read_text(app.manifest_path)
    if replaced is not None:
        listed = edit.remove_model(listed, replaced.name) or ""
    changes: dict[Path, bytes | None] = {place: source.read_bytes() for place, source in copies.items()}
    changes[app.manifest_path] = edit.add_model(listed, entry).encode()
    before = files.read_text(app.prj_conf_path)
    after = edit.switch_on(before)
    if after != before:
        changes[app.prj_conf_path] = after.encode()
    return changes


def _report(
    console: Console,
    app: folder.Application,
    entry: manifest.ModelEntry,
    compiled: Compiled,
    copied: bool,
) -> None:
    from rich.table import Table

    summary = compiled.summary

    if copied:
        console.print(
            f"copied to {entry.file} (the original is outside the application's repository)", markup=False
        )
    console.print(f"added {entry.name} ({entry.file}) to {app.manifest_path}", markup=False, soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("arena", f"{summary['arena_bytes']:,} bytes of RAM")
    if summary.get("state_bytes"):
        table.add_row("state", f"{summary['state_bytes']:,} bytes of RAM, kept between runs")
    table.add_row("weights", f"{summary['weights_bytes']:,} bytes of flash")
    for kind in ("inputs", "outputs"):
        for tensor in summary[kind]:
            shape = naming.shape_text(tensor["shape"])
            table.add_row(
                kind[:-1], f"{tensor['name']}: {shape} {tensor['dtype']}, {tensor['bytes']:,} bytes"
            )
    console.print(table, markup=False)
    print_notes(console, compiled.graph.notes)
    if floats := sum(chosen.in_float for chosen in compiled.selected):
        off = edit.is_off(files.read_text(app.prj_conf_path), "CONFIG_FPU")
        advice = (
            "prj.conf has CONFIG_FPU off: remove that line; with an FPU they take about a tenth of the time"
            if off
            else "CONFIG_TINYML enables the FPU (CONFIG_FPU) where the core has one"
        )
        console.print(
            f"{floats} of {len(compiled.selected)} layers compute in float. {advice}",
            markup=False,
            soft_wrap=True,
        )
    if summary["libm"]:
        from tinyml.maths import FULL_LIBC

        console.print(
            f"{entry.name} computes {', '.join(summary['libm'])} in double: it needs {FULL_LIBC} in prj.conf",
            markup=False,
            soft_wrap=True,
        )
    if compiled.quantization:
        for line in (f"int8: {compiled.quantization.headline()}", *compiled.quantization.advice()):
            console.print(line, markup=False, soft_wrap=True)
    console.print(
        f"Sizes are for {summary['target']}. Next: #include <{entry.name}.h>, then run west build.",
        markup=False,
    )
