# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`add`: make a model part of an application."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base import naming
from tinyml.base.errors import ConfigError, TinymlError
from tinyml.base.lock import locked
from tinyml.cores.targets import TARGETS, find_target
from tinyml.projects import edit, files, folder, manifest, model_files
from tinyml.settings import interface, table
from tinyml.settings.model_forms import IN_PROJECTS
from tinyml.settings.quantize_request import PATHS
from tinyml.settings.setting import COMMAND, YAML
from tinyml.verbs import make_test
from tinyml.verbs.add_report import report, say_what_is_left, warn_of_budget
from tinyml.verbs.base import Verb, add_app_argument
from tinyml.verbs.settings import add_setting, chosen, given_settings, words_of

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.pipeline import Compiled, Options
    from tinyml.settings.quantize_request import Request


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
            "--replace",
            action="store_true",
            help="replace the model of this name and keep its settings; prints what differs",
        )
        for key, setting in table.settings(COMMAND).items():
            if key != "name" and YAML in setting.places and (not setting.verbs or self.name in setting.verbs):
                written = f"write this into tinyml.yaml: {setting.about}" if setting.form.choices else ""
                add_setting(parser, key, IN_PROJECTS if key == "io" else None, written, default="")
        parser.add_argument(
            "--test", action="store_true", help="also write a Twister test for it, as `test` does"
        )
        parser.add_argument(
            "--input", type=Path, metavar="X.npz", help="for --test: inputs, and outputs if it has them"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.pipeline import compile_model

        if args.input and not args.test:
            raise ConfigError("--input requires --test, which writes a test with these inputs", "add --test")
        app = folder.find_application(args.app, Path.cwd())
        target = find_target(args.target)
        model = model_files.existing_model(args.model)
        name = args.name or naming.model_name(model)
        listed = app.manifest()
        replaced = listed.find(name) if args.replace else None
        if args.replace and replaced is None:
            raise ConfigError(f"there is no model called {name!r} to replace", "--name, or no --replace")
        others = manifest.Manifest(tuple(entry for entry in listed.models if entry is not replaced))
        _refuse_clash(others, name, model, app)
        own = _files_of(app, replaced).difference(*(_files_of(app, entry) for entry in others.models))
        file, copied = model_files.place(model, app, name, own)
        if replaced is not None and (app.root / file).resolve() == replaced.path(app.root).resolve():
            file = replaced.file  # as the user wrote it
        quantize, copies = model_files.calibration(words_of(args, "quantize"), app, name, own)
        given = given_settings(args, table.settings(YAML))
        given |= {"quantize": quantize} if quantize else {}
        operators = [Path(word) for word in words_of(args, "operators")]
        given |= {"operators": model_files.operators(operators, app)} if operators else {}
        entry = (replaced or manifest.ModelEntry(name, file)).having(file=file, **given)
        if copied:
            copies[app.root / file] = model
        wanted = chosen(args, ("quantize",)).quantize
        if wanted is None and replaced is not None:
            wanted = replaced.request(app.root)  # as the build will
        options = _options(app, entry, target.name, wanted)
        try:
            compiled = compile_model(model, options)
        except TinymlError as error:
            if wanted is not None and not quantize:
                kept = f"{app.manifest_path.name} has `quantize:` for {name}, which --replace keeps"
                error.hint = f"{error.hint}; {kept}" if error.hint else kept
            raise
        copy = app.root / file
        if copied or not model.samefile(copy):  # the same graph can have other weights beside it
            copies |= model_files.external_data(model, compiled.files_read, copy, own)
        interface.check(compiled.summary, entry.interface)
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
        report(console, app, entry, compiled, copied)
        for line in differences:
            console.print(f"changed: {line}", markup=False, soft_wrap=True)
        if replaced is not None:
            say_what_is_left(console, app, replaced)
        warn_of_budget(console, entry, compiled, model, options)
        if args.test:
            make_test.said(console, app, place)
        return 0


def _files_of(app: folder.Application, entry: manifest.ModelEntry | None) -> set[Path]:
    """What the build reads for a model: it, its external data, and the data of `quantize:`."""
    from tinyml.pipeline import read_model

    if entry is None:
        return set()
    model = entry.path(app.root)
    try:
        read = read_model(model).files
    except TinymlError:  # a damaged file; `add --replace` mends it
        read = [model]
    data = [app.root / entry.quantize[key] for key in PATHS if key in entry.quantize]
    return {path.resolve() for path in (*read, *data)}


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
            "--replace to put this one in its place and keep the settings, or another name with --name",
        )
    naming.check_unique([*(entry.name for entry in listed.models), name])


def _options(
    app: folder.Application, entry: manifest.ModelEntry, target: str, wanted: Request | None
) -> Options:
    """The options with which the build will compile the model."""
    from tinyml.setup.workspace import find_cmsis_nn

    return entry.options(app.root, target=target, quantize=wanted, cmsis_nn=find_cmsis_nn() is not None)


def _differences(
    app: folder.Application, replaced: manifest.ModelEntry | None, compiled: Compiled
) -> list[str]:
    """How the interface differs from that of the model before, if its file is still there."""
    from tinyml.pipeline import compile_model

    if replaced is None or not replaced.path(app.root).is_file():
        return []
    try:
        wanted = replaced.request(app.root)
        options = _options(app, replaced, compiled.summary["target"], wanted)
        before = compile_model(replaced.path(app.root), options)
    except TinymlError as error:
        return [f"the model before does not compile: {error.message}"]
    return interface.differences(before.summary, compiled.summary) or ["nothing in the interface"]


def _changes(
    app: folder.Application,
    entry: manifest.ModelEntry,
    replaced: manifest.ModelEntry | None,
    copies: dict[Path, Path],
) -> dict[Path, bytes | None]:
    listed = files.read_text(app.manifest_path)
    listed = edit.replace_model(listed, entry) if replaced else edit.add_model(listed, entry)
    changes: dict[Path, bytes | None] = {place: source.read_bytes() for place, source in copies.items()}
    changes[app.manifest_path] = listed.encode()
    before = files.read_text(app.prj_conf_path)
    after = edit.switch_on(before)
    if after != before:
        changes[app.prj_conf_path] = after.encode()
    return changes
