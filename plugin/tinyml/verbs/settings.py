# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a model on the command line: options made from the table, and what was given for them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyml.base.errors import ConfigError
from tinyml.settings import table
from tinyml.settings.model_forms import IN_PROJECTS
from tinyml.settings.options import Options, of_options
from tinyml.settings.passing import ARENA, Io
from tinyml.settings.setting import COMMAND, YAML

if TYPE_CHECKING:
    from tinyml.projects.manifest import ModelEntry

IN_ARENA = (ARENA, *IN_PROJECTS)
"""The choices of `--io` where this command itself runs the model."""

OF_THE_MODEL = "settings of the model, the same for all commands"
"""The title of their part of the help; the site has it once."""

FILE = "the model file, .onnx or .tflite"
FILE_OR_NAME = f"{FILE}, or a model's name in tinyml.yaml"

NOT_IN_IMAGES = ("frontend", "classes")
"""What an image that is fed with inputs from here does without."""


def add_model_arguments(
    parser: argparse.ArgumentParser,
    target: bool = True,
    io: Sequence[str] = IN_ARENA,
    verb: str = "",
    help: str = FILE,
) -> None:
    """The model and the settings that determine the generated code; the same for all verbs."""
    parser.add_argument("model", type=Path, metavar="MODEL", help=help)
    add_option_arguments(parser, target, io, verb)


def add_option_arguments(
    parser: argparse.ArgumentParser, target: bool = True, io: Sequence[str] = IN_ARENA, verb: str = ""
) -> None:
    """The settings without the model; with ``verb``, also those that only some verbs have."""
    group = parser.add_argument_group(OF_THE_MODEL)
    for name, setting in table.settings(COMMAND).items():
        if (name != "target" or target) and (not setting.verbs or verb in setting.verbs):
            add_setting(group, name, {"io": io}.get(name))


def add_setting(
    parser: argparse._ActionsContainer,
    name: str,
    choices: Sequence[str] | None = None,
    help: str = "",
    default: str | None = None,
) -> None:
    """The option of one setting. ``default`` is only shown; empty: nothing is."""
    setting = table.settings(COMMAND)[name]
    form = setting.form
    allowed = choices or form.choices or None
    shown = default if default is not None else "" if form.many else str(setting.default or "")
    text = help or setting.command
    if allowed and form.meanings and not help:
        words = {word for choice in allowed for word in choice.split(",")}
        text = "; ".join(f"{word}: {meaning}" for word, meaning in form.meanings.items() if word in words)
    options: dict[str, Any] = {"action": "append"} if form.many else {}
    if form.switch:
        options, shown = {"action": "store_const", "const": "true"}, ""
    else:
        options |= {"choices": tuple(allowed)} if allowed else {"metavar": setting.metavar or setting.keyword}
    if name == "io":
        options |= {"type": _spelt, "metavar": "|".join(allowed or ())}  # braces and commas would be misread
    if name in ("name", "target"):
        options["default"] = setting.default
    if name == "target" and shown:
        shown = "%(default)s"  # some verbs have another one
    parser.add_argument(
        setting.flag,
        dest=name,
        help=text.replace("%", "%%") + (f" (default: {shown})" if shown else ""),
        **options,
    )


def _spelt(text: str) -> str:
    """The words of `--io` in their usual order."""
    try:
        return str(Io.of(text))
    except ConfigError:
        return text  # argparse says what is allowed


def words_of(args: argparse.Namespace, name: str) -> list[str]:
    """What the command line has for a setting; empty if nothing."""
    given = getattr(args, name, None)
    if given is None or given == "":
        return []
    return [str(given)] if isinstance(given, str | Path) else [str(word) for word in given]


def given_settings(args: argparse.Namespace, names: Iterable[str] | None = None) -> dict[str, Any]:
    """The checked values of the settings on the command line, as an entry of tinyml.yaml holds them."""
    known = table.settings()
    return {
        name: known[name].form.parse(words, known[name].flag)
        for name in (known if names is None else names)
        if name not in ("name", "file") and (words := words_of(args, name))
    }


def chosen(args: argparse.Namespace, names: Iterable[str]) -> Options:
    """The pipeline's options with these settings of the command line, and the defaults of others."""
    known = table.settings()
    return Options(
        **{
            name: known[name].form.option(value, Path())
            for name, value in given_settings(args, names).items()
        }
    )


def options_from(args: argparse.Namespace, target: str) -> Options:
    """The pipeline's options from parsed arguments."""
    return replace(
        chosen(args, (name for name in of_options() if name != "target")),
        name=args.name,
        target=target,
        cmsis_nn=_has_cmsis_nn(args),
    )


def _has_cmsis_nn(args: argparse.Namespace) -> bool:
    """`compile` has an option for it; verbs that build the model themselves search for it."""
    from tinyml.setup.workspace import find_cmsis_nn

    if hasattr(args, "cmsis_nn"):
        return bool(args.cmsis_nn)
    return words_of(args, "kernels") in ([], ["auto"]) and find_cmsis_nn() is not None


def add_from_entry(args: argparse.Namespace, entry: ModelEntry, folder: Path) -> None:
    """Settings that tinyml.yaml has for a model and the command line does not."""
    for name in of_options():
        if name not in entry.given:
            continue
        form = table.settings()[name].form
        own, listed = words_of(args, name), form.words(entry.given[name], folder)
        if form.keyed or not own:
            setattr(args, name, [*listed, *own])


def entry_settings(args: argparse.Namespace) -> Mapping[str, Any]:
    """The settings of an image for `verify` and `profile`, as tinyml.yaml would have them."""
    defaults = {"kernels": Options().kernels, "optimize": Options().optimize}
    given = {name: found for name, found in given_settings(args).items() if name not in NOT_IN_IMAGES}
    return {name: found for name, found in {**defaults, **given}.items() if name in table.settings(YAML)}
