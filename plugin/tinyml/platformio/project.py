# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The models of a PlatformIO project and the options in ``platformio.ini``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tinyml import naming
from tinyml.accelerators import check as check_accelerator
from tinyml.app import keys, manifest
from tinyml.errors import ConfigError
from tinyml.features import settings as frontends
from tinyml.goals import BALANCED, GOALS
from tinyml.pinned import Kind
from tinyml.platformio.boards import Board
from tinyml.quantize.request import Request, from_items
from tinyml.targets import find_target

PREFIX = "custom_tinyml_"
OPTIONS = {
    "models": "model files, one per line; `name=file` to choose the C prefix",
    "kernels": f"where the kernels come from: {', '.join(keys.KERNELS)}",
    "cmsis_nn": "folder of CMSIS-NN (default: found among the libraries or in the Zephyr package)",
    "optimize": f"what models may spend: {', '.join(GOALS)} (default: balanced); `image`: balanced, but "
    "compiled with the flags of the rest of the image",
    "io": keys.KEYS["io"],
    "target": "the core to compile for (default: the board's)",
    "shapes": "shapes of inputs that a model leaves open, as `input=1x16x8`, one per line",
    "quantize": "make float models int8: calibration data, then `key=value` as in tinyml.yaml, one per line",
    "frontend": "front end that makes the input from samples: kind, then `key=value` as in tinyml.yaml",
    "operators": "Python files with operators of your own that models use, and C files that their kernels "
    "call, one per line",
    "npu": "the Arm Ethos-U that computes what it can of int8 models, as ethos-u55-128",
    "install": "`yes`: the build may install the Python packages that the compiler requires (default: `no`)",
    "arena": "upper limit for a model's arena, in bytes or as 24K",
}
"""Every option, without its prefix ``custom_tinyml_``. A test compares the documentation with this table."""

IMAGE = "image"
FOLDERS = ("models", "model", ".")
SUFFIXES = (".onnx", ".tflite")


@dataclass(frozen=True)
class Model:
    """A model of the project and how to compile it."""

    name: str
    path: Path
    target: str
    kernels: str
    shapes: Mapping[str, str] = field(default_factory=dict)
    arena_limit_bytes: int | None = None
    budget: Mapping[str, int] = field(default_factory=dict)  # from tinyml.yaml
    quantize: Request | None = None
    cmsis_nn: bool = False  # whether the project has it
    frontend: frontends.FrontEnd | None = None
    interface: Mapping[str, Kind] = field(default_factory=dict)  # from tinyml.yaml
    operators: tuple[Path, ...] = ()
    classes: tuple[str, ...] = ()  # from tinyml.yaml
    optimize: str = BALANCED.name
    io: str = "arena"
    npu: str = ""

    def key(self, compiler: str) -> str:
        """Everything but the model's own bytes that decides what is generated."""
        shapes = ",".join(f"{name}={shape}" for name, shape in sorted(self.shapes.items()))
        limits = f"arena<={self.arena_limit_bytes} {sorted(self.budget.items())}"
        limits += "".join(f" {name}={kind}" for name, kind in sorted(self.interface.items()))
        limits += f" {self.classes}" if self.classes else ""
        limits += f" npu {self.npu}" if self.npu else ""
        quantize = self.quantize.describe() if self.quantize else ""
        quantize += f" {self.frontend.describe()}" if self.frontend else ""
        kernels = f"{self.kernels} {self.cmsis_nn} {self.optimize} {self.io}"
        return f"{self.name} {self.target} {kernels} [{shapes}] {limits} {quantize} compiler {compiler}"

    @property
    def dimensions(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(map(int, shape.split("x"))) for name, shape in self.shapes.items()}


@dataclass(frozen=True)
class Settings:
    """Settings for all models: the CMSIS-NN that the project names, and what they may spend."""

    cmsis_nn: Path | None = None
    optimize: str = ""  # empty if the project does not choose

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
    return Settings(project / _with_slashes(named) if named else None, _goal(given))


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
    shapes = parse_shapes(given.get("shapes", ""))
    wanted = given.get("kernels", "auto")
    if wanted not in keys.KERNELS:
        raise ConfigError(
            f"{PREFIX}kernels: unknown kernels {wanted!r}",
            f"one of: {', '.join(keys.KERNELS)}",
        )
    limit = keys.parse_bytes(given["arena"], f"{PREFIX}arena") if "arena" in given else None
    quantize = from_items(_items(given.get("quantize", "")), f"{PREFIX}quantize", project)
    frontend = frontends.from_items(_items(given.get("frontend", "")), f"{PREFIX}frontend")
    operators = tuple(_with_slashes(item) for item in _items(given.get("operators", "")))
    io = given.get("io", "arena")
    if io not in ("arena", *keys.IO):
        raise ConfigError(f"{PREFIX}io: unknown choice {io!r}", " or ".join(keys.IO))
    goal = BALANCED.name if _goal(given) in ("", IMAGE) else _goal(given)
    npu = check_accelerator(given["npu"]) if "npu" in given else ""
    entries = _entries(project, given.get("models"))
    if not entries:
        return []
    target = find_target(given["target"]).name if "target" in given else board.target
    models = []
    for entry in entries:
        request = entry.request(project) or quantize
        if request:
            request.check_files()
        kernels = entry.kernels or wanted
        if kernels == "cmsis-nn" and not cmsis_nn:
            raise ConfigError(
                f"model {entry.name} requires CMSIS-NN, which the project does not have",
                f"add CMSIS-NN to lib_deps, or set {PREFIX}cmsis_nn to its folder",
            )
        models.append(
            Model(
                entry.name,
                _existing(project, entry),
                target,
                kernels,
                {**shapes, **entry.shapes},
                limit,
                entry.budget,
                request,
                cmsis_nn,
                entry.frontend or frontend,
                entry.interface,
                tuple(_existing_operators(project, file) for file in (*operators, *entry.operators)),
                entry.classes,
                entry.optimize or goal,
                entry.io or io,
                entry.npu or npu,
            )
        )
    return models


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


def _existing_operators(project: Path, file: str) -> Path:
    path = project / file
    if not path.is_file():
        raise ConfigError(f"there is no file {file} with operators in {project.name}", "correct the path")
    return path


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


def parse_shapes(text: str) -> dict[str, str]:
    """``audio=1x16x8`` by line, as a mapping."""
    return keys.parse_shapes(_items(text), f"{PREFIX}shapes")
