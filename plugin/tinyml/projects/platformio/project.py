# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The models of a PlatformIO project and the options in ``platformio.ini``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from tinyml.base import naming
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import find_target
from tinyml.projects import manifest
from tinyml.projects.platformio.boards import Board
from tinyml.settings import table
from tinyml.settings.interface import Kind
from tinyml.settings.optimize import BALANCED, GOALS
from tinyml.settings.options import Options
from tinyml.settings.setting import INI
from tinyml.settings.written import parse_bytes

PREFIX = "custom_tinyml_"
OPTIONS = {
    "models": "model files, one per line; `name=file` to choose the C prefix",
    **{name: setting.ini for name, setting in table.settings(INI).items()},
    "cmsis_nn": "folder of CMSIS-NN (default: found among the libraries or in the Zephyr package)",
    "install": "`yes`: the build may install the Python packages that the compiler requires (default: `no`)",
    "arena": "upper limit for a model's arena, in bytes or as 24K",
    "player": "kernels for models that are data: `all`, groups such as `conv`, or files of models and packs",
}
"""Every option, without its prefix ``custom_tinyml_``. A test compares the documentation with this table."""

IMAGE = "image"
FOLDERS = ("models", "model", ".")
SUFFIXES = naming.MODEL_SUFFIXES


@dataclass(frozen=True)
class Model:
    """A model of the project and how to compile it."""

    name: str
    path: Path
    options: Options
    arena_limit_bytes: int | None = None
    budget: Mapping[str, int] = field(default_factory=dict)  # from tinyml.yaml
    interface: Mapping[str, Kind] = field(default_factory=dict)  # from tinyml.yaml

    def key(self, compiler: str) -> str:
        """Everything but the model's own bytes that decides what is generated."""
        limits = f"arena<={self.arena_limit_bytes} {sorted(self.budget.items())}"
        limits += "".join(f" {name}={kind}" for name, kind in sorted(self.interface.items()))
        return f"{self.options} {limits} compiler {compiler}"


@dataclass(frozen=True)
class Settings:
    """Settings for all models: the CMSIS-NN that the project names, and what they may spend."""

    cmsis_nn: Path | None = None
    optimize: str = ""  # empty if the project does not choose
    player: tuple[str, ...] = ()  # which kernels it can play

    def flags(self, models: Sequence[str]) -> list[str]:
        """The C compiler's options for code of models with these goals; kernels serve all models."""
        if self.optimize == IMAGE:
            return []
        goals = {GOALS[name].flag for name in models or [self.optimize or BALANCED.name]}
        return [goals.pop() if len(goals) == 1 else BALANCED.flag]


def read_settings(project: Path, options: Mapping[str, str]) -> Settings:
    """The options that apply to all models."""
    given = _own_options(options)
    named = given.get("cmsis_nn")
    player = tuple(_with_slashes(word) for word in _items(given.get("player", "")))
    player = player or manifest.load(project / manifest.FILE_NAME).player
    return Settings(project / _with_slashes(named) if named else None, _goal(given), player)


def _goal(given: Mapping[str, str]) -> str:
    wanted, allowed = given.get("optimize", ""), (*GOALS, IMAGE)
    if wanted and wanted not in allowed:
        raise ConfigError(f"{PREFIX}optimize: unknown choice {wanted!r}", f"one of: {', '.join(allowed)}")
    return wanted


def read_models(project: Path, options: Mapping[str, str], board: Board, cmsis_nn: bool) -> list[Model]:
    """The models of a project. ``cmsis_nn``: whether the project has it.

    ``custom_tinyml_models`` decides; without it a ``tinyml.yaml``; without that, every model file in
    the project's folder, ``models/`` or ``model/``.
    """
    given = _own_options(options)
    common = _common(project, given)
    limit = parse_bytes(given["arena"], f"{PREFIX}arena") if "arena" in given else None
    entries = _entries(project, given.get("models"))
    if not entries:
        return []
    target = find_target(given["target"]).name if "target" in given else board.target
    models = []
    for entry in entries:
        wanted = _merged(common, entry.options(project), target=target, cmsis_nn=cmsis_nn)
        if wanted.quantize:
            wanted.quantize.check_files()
        if wanted.kernels == "cmsis-nn" and not cmsis_nn:
            raise ConfigError(
                f"model {entry.name} requires CMSIS-NN, which the project does not have",
                f"add CMSIS-NN to lib_deps, or set {PREFIX}cmsis_nn to its folder",
            )
        for file in wanted.operators:
            _check_operators(project, file)
        path = _existing(project, entry)
        models.append(Model(entry.name, path, wanted, limit, entry.budget, entry.interface))
    return models


def _common(project: Path, given: Mapping[str, str]) -> dict[str, Any]:
    """The settings for all models, as fields of Options."""
    values = {}
    for name, setting in table.settings(INI).items():
        text = given.get(name, "").strip()
        words = _items(text) if setting.form.many else [text] if text else []
        words = [_with_slashes(word) if name == "operators" else word for word in words]
        if not words or name == "target" or words == [IMAGE]:
            continue
        value = setting.form.parse(words, f"{PREFIX}{name}")
        setting.form.check_project(value, f"{PREFIX}{name}")
        values[name] = setting.form.option(value, project)
    return values


def _merged(common: Mapping[str, Any], own: Options, **others: Any) -> Options:
    """A model's settings, and those for all models where it has none."""
    merged = {}
    for name, value in common.items():
        setting = table.settings()[name]
        found = getattr(own, name)
        merged[name] = setting.form.merged(value, None if found == setting.default else found)
    return replace(own, **merged, **others)


def _own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Our options without their prefix; a misspelt one is an error, not a silent default."""
    given = {}
    for full_name, value in options.items():
        if not full_name.startswith(PREFIX):
            continue
        name = full_name.removeprefix(PREFIX)
        if name not in OPTIONS:
            close = difflib.get_close_matches(name, OPTIONS, 1)
            hint = (
                f"did you mean {PREFIX}{close[0]}?"
                if close
                else f"one of: {', '.join(PREFIX + o for o in OPTIONS)}"
            )
            raise ConfigError(f"platformio.ini: unknown option {full_name}", hint)
        given[name] = str(value).strip()
    return given


def _entries(project: Path, listed: str | None) -> list[manifest.ModelEntry]:
    if listed is not None:
        entries = [_listed(item) for item in _items(listed)]
    elif (project / manifest.FILE_NAME).is_file():
        entries = list(manifest.load(project / manifest.FILE_NAME).models)
    else:
        entries = [
            manifest.ModelEntry(naming.model_name(path), path.relative_to(project).as_posix())
            for path in find_by_convention(project)
        ]
    for entry in entries:
        naming.check_name(entry.name)
    _refuse_clash(entries)
    return entries


def _refuse_clash(entries: list[manifest.ModelEntry]) -> None:
    """Two files with one name: the message names both, because the names come from the files."""
    seen: dict[str, manifest.ModelEntry] = {}
    for entry in entries:
        if other := seen.get(entry.name.lower()):
            raise ConfigError(
                f"{other.file} and {entry.file} would both be called {entry.name!r}",
                f"choose names: {PREFIX}models = {other.name}={other.file}, {entry.name}_2={entry.file}",
            )
        seen[entry.name.lower()] = entry
    naming.check_unique(entry.name for entry in entries)


def _listed(item: str) -> manifest.ModelEntry:
    name, equals, file = (part.strip() for part in item.partition("="))
    if not equals:
        name, file = "", item
    file = _with_slashes(file)
    return manifest.ModelEntry(name or naming.model_name(Path(file)), file)


def _with_slashes(path: str) -> str:
    """A path as written on Windows, usable on every system."""
    return path.replace("\\", "/")


def _items(text: str) -> list[str]:
    """The items of a PlatformIO list, separated by line breaks or by comma and space."""
    return [item.strip() for item in re.split(r"\n|, ", text) if item.strip()]


def _check_operators(project: Path, path: Path) -> None:
    if not path.is_file():
        file = path.relative_to(project).as_posix()
        raise ConfigError(f"there is no operator file {file} in {project.name}", "correct the path")


def _existing(project: Path, entry: manifest.ModelEntry) -> Path:
    path = project / entry.file
    if path.is_file():
        return path
    found = [file.relative_to(project).as_posix() for file in find_by_convention(project)]
    raise ConfigError(
        f"there is no model file {entry.file} in {project.name}",
        f"correct the path or remove the entry; the project has {', '.join(found) or 'no model files'}",
    )


def find_by_convention(project: Path) -> list[Path]:
    """Model files in the conventional folders, in a fixed order."""
    return [
        path
        for folder in FOLDERS
        if (project / folder).is_dir()
        for path in sorted((project / folder).iterdir())
        if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
