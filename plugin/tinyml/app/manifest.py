# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The application's manifest, ``tinyml.yaml``: which models belong to the firmware, and how they are built.

It is deliberately small (``KEYS`` lists all of it):

    models:
      - name: kws             # C prefix: kws.h, kws_run(), kws_input() ...
        file: models/kws.onnx # relative to the manifest
        kernels: portable     # optional: auto, cmsis-nn or portable
        optimize: ram         # optional: balanced, speed, size or ram
        shapes:               # optional: inputs whose dimensions the model leaves open
          audio: 1x16x8
        budget:               # optional: more than this is an error
          ram: 24K
          flash: 100K
        interface:            # optional: what the application relies on
          input: int8[1,49,10,1]
        classes: [left, right] # optional: names for KWS_LABELS in the header
        quantize:             # optional: make a float model int8 in the build
          calibration: data/calib.npz
        evaluate:             # optional: `west tinyml test` writes a test of the accuracy on the board
          data: data/test.npz
          min_accuracy: 0.95
        npu: ethos-u55-128    # optional: an Arm Ethos-U computes what it can of an int8 model
        frontend:             # optional: kws_feed() takes samples and computes the features
          kind: micro
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import yaml

from tinyml import limits, pinned
from tinyml.accelerators import ACCELERATORS, LISTED, unknown
from tinyml.app import evaluation
from tinyml.errors import ConfigError
from tinyml.goals import GOALS, find_goal
from tinyml.naming import check_name, check_unique
from tinyml.quantize import request

if TYPE_CHECKING:
    from tinyml.features.settings import FrontEnd

FILE_NAME = "tinyml.yaml"
KERNELS = ("auto", "cmsis-nn", "portable")
IO = ("int8", "rows", "rows,int8")
"""The choices of ``io:``; CMake's and the command line's are the same words."""
BUDGETS = ("arena", "ram", "flash")
KEYS = {
    "name": "C prefix of the model: a model called kws gives kws.h, kws_run(), kws_input()",
    "file": "the model file (.onnx or .tflite), relative to tinyml.yaml",
    "kernels": f"where the kernels come from: {', '.join(KERNELS)} (default: the build's setting)",
    "optimize": f"what to spend: {', '.join(GOALS)} (default: the build's setting, else balanced)",
    "io": "`int8`: the inputs and outputs of a quantised model with a float interface become integers; "
    "scales and zero points are in the header. `rows`: the application feeds the input in rows as they "
    "arrive, so that it is never in RAM as a whole. `rows,int8`: both",
    "shapes": "shapes of inputs that the model leaves open, as `input: 1x16x8`",
    "budget": "upper limits, as `ram: 24K`, for arena, ram (arena and state) and "
    "flash (weights, tables, code)",
    "interface": "types and shapes that the application relies on, as `input: int8[1,49,10,1]`: a model that "
    "differs fails the build",
    "classes": "names of the classes in the order of the outputs, as `[circle, idle]`: "
    "KWS_LABELS in the header",
    "quantize": "make a float model int8 in the build, calibrated with the data in `calibration: calib.npz`",
    "evaluate": "a test set for `west tinyml test`, as `{data: test.npz, min_accuracy: 0.95}`: the test "
    "requires this accuracy on the board",
    "frontend": "what makes the model's input from samples, as `kind: micro`: gives kws_feed()",
    "operators": "Python files with operators of your own that the model uses, relative to tinyml.yaml",
    "sources": "C files that the kernels of such operators call, relative to tinyml.yaml",
    "npu": "the Arm Ethos-U that computes what it can of an int8 model, as `ethos-u55-128`",
    "arena_region": "Zephyr: label of the zephyr,memory-region for the arena (default: chosen tinyml,arena)",
    "weights": "Zephyr: where the weights go: flash (default), ram (copied there at boot, for speed), "
    "or the label of a zephyr,memory-region",
}
"""Every key of a model in the manifest. A test compares the documentation with this table."""


@dataclass(frozen=True)
class ModelEntry:
    """One model of an application. ``file`` is relative to the manifest and uses ``/``."""

    name: str
    file: str
    kernels: str | None = None
    shapes: Mapping[str, str] = field(default_factory=dict)
    budget: Mapping[str, int] = field(default_factory=dict)  # bytes, by kind
    arena_region: str | None = None
    quantize: Mapping[str, str] = field(default_factory=dict)  # settings; paths relative to the manifest
    weights: str | None = None  # flash, ram or a label of the devicetree
    frontend: FrontEnd | None = None
    interface: Mapping[str, pinned.Kind] = field(default_factory=dict)
    operators: tuple[str, ...] = ()  # and ``sources``; relative to the manifest, with ``/``
    classes: tuple[str, ...] = ()
    evaluate: evaluation.Evaluate | None = None  # paths relative to the manifest
    optimize: str | None = None  # a key of goals.GOALS
    io: str | None = None  # one of IO
    npu: str = ""

    def pipeline_io(self) -> str:
        """The choice of inputs and outputs as the pipeline names it."""
        return self.io or "arena"

    def path(self, folder: Path) -> Path:
        return folder / self.file

    def request(self, folder: Path) -> request.Request | None:
        """How to quantise the model; None if it is not quantised."""
        return request.from_settings(self.quantize, folder) if self.quantize else None

    def as_yaml(self) -> dict[str, Any]:
        """This entry as it is written in the manifest."""
        written: dict[str, Any] = {"name": self.name, "file": self.file}
        if self.kernels is not None:
            written["kernels"] = self.kernels
        if self.optimize is not None:
            written["optimize"] = self.optimize
        if self.io is not None:
            written["io"] = self.io
        if self.shapes:
            written["shapes"] = dict(self.shapes)
        if self.budget:
            written["budget"] = dict(self.budget)
        if self.interface:
            written["interface"] = {name: str(kind) for name, kind in self.interface.items()}
        if self.classes:
            written["classes"] = list(self.classes)
        if self.arena_region is not None:
            written["arena_region"] = self.arena_region
        if self.weights is not None:
            written["weights"] = self.weights
        if self.quantize:
            written["quantize"] = dict(self.quantize)
        if self.evaluate:
            written["evaluate"] = dict(self.evaluate.given)
        if self.frontend:
            written["frontend"] = dict(self.frontend.given)
        for key, wanted in (("operators", False), ("sources", True)):
            if files := [file for file in self.operators if _is_c(file) == wanted]:
                written[key] = files
        if self.npu:
            written["npu"] = self.npu
        return written


@dataclass(frozen=True)
class Manifest:
    """A manifest that has been read and checked."""

    models: tuple[ModelEntry, ...] = ()

    def find(self, name: str) -> ModelEntry | None:
        return next((model for model in self.models if model.name == name), None)


def load(path: Path) -> Manifest:
    """Read and check a manifest; one that does not exist has no models."""
    try:
        if path.stat().st_size > limits.limit("yaml_bytes"):
            raise ConfigError(f"{path} is larger than {limits.limit('yaml_bytes'):,} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Manifest()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Manifest:
    """The manifest in ``text``; ``where`` names it in messages."""
    try:
        document = yaml.safe_load(text)
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply", "a list of models, each a mapping") from None
    except ValueError as error:  # such as a date that there is not
        raise ConfigError(f"{where} has a value that cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not YAML: {_with_caret(error)}") from None
    if document is None:
        return Manifest()
    if not isinstance(document, dict):
        raise ConfigError(f"{where} must be a mapping with the key 'models', found {_kind(document)}")
    _refuse_unknown(document, ("models",), where)
    listed = document.get("models")
    if listed is None:
        return Manifest()
    if not isinstance(listed, list):
        raise ConfigError(
            f"{where}: 'models' must be a list, found {_kind(listed)}", "- name: kws\n         file: kws.onnx"
        )
    models = tuple(_entry(item, f"{where}: model {index}") for index, item in enumerate(listed, 1))
    try:
        for model in models:
            check_name(model.name)
        check_unique(model.name for model in models)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", f"`name:` in {FILE_NAME}: {error.hint}") from None
    return Manifest(models)


def _with_caret(error: yaml.YAMLError) -> str:
    """What is wrong, the line and, under it, a caret at the place."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or problem is None:
        return " ".join(str(error).split())
    snippet = mark.get_snippet(indent=4) or ""
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" + (f"\n{snippet}" if snippet else "")


def _entry(item: object, where: str) -> ModelEntry:
    if not isinstance(item, dict):
        raise ConfigError(f"{where} must be a mapping with 'name' and 'file', found {_kind(item)}")
    _refuse_unknown(item, tuple(KEYS), where)
    for key in ("name", "file"):
        if not isinstance(item.get(key), str) or not item[key]:
            found = _kind(item[key]) if key in item else "nothing"
            raise ConfigError(f"{where}: {key!r} must be a string, found {found}", KEYS[key])
    kernels = item.get("kernels")
    if kernels is not None and kernels not in KERNELS:
        raise ConfigError(f"{where}: unknown kernels {kernels!r}", f"one of: {', '.join(KERNELS)}")
    return ModelEntry(
        item["name"],
        _checked_file(item["file"], where),
        kernels,
        checked_shapes(item.get("shapes"), where),
        _budget(item.get("budget"), where),
        _label(item, "arena_region", "a label of the devicetree", "dtcm", where),
        _quantize(item.get("quantize"), where),
        _label(item, "weights", "flash, ram or a label of the devicetree", "ram", where),
        _frontend(item.get("frontend"), where),
        pinned.from_mapping(item.get("interface"), where),
        (*_operators(item.get("operators"), where), *_sources(item.get("sources"), where)),
        _classes(item.get("classes"), where),
        _evaluate(item.get("evaluate"), where),
        find_goal(str(item["optimize"]), where).name if item.get("optimize") is not None else None,
        _io(item.get("io"), where),
        _npu(item.get("npu"), where),
    )


def _io(value: object, where: str) -> str | None:
    if value is None or value in IO:
        return None if value is None else str(value)
    raise ConfigError(f"{where}: 'io' cannot be {value!r}", f"io: {' or '.join(IO)}, or no such line")


def _npu(value: object, where: str) -> str:
    if value is None:
        return ""
    if value not in ACCELERATORS:
        raise ConfigError(f"{where}: {unknown(value)}", LISTED)
    return str(value)


def _evaluate(value: object, where: str) -> evaluation.Evaluate | None:
    found = evaluation.from_yaml(value, where)
    if found is not None:
        for key in evaluation.PATHS:
            if key in found.given:
                _checked_file(found.given[key], where, f"evaluate: {key}")
    return found


def _classes(value: object, where: str) -> tuple[str, ...]:
    """Names of classes; YAML reads yes, no and numbers as something else than words."""
    if value is None:
        return ()
    hint = 'classes: [circle, "yes", "7"], each once; names have no comma or semicolon'
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where}: 'classes' must be a list of names, found {_kind(value)}", hint)
    for name in value:
        if not isinstance(name, str) or not name.strip() or set(name) & set(",;\n\0"):
            raise ConfigError(f"{where}: {name!r} cannot be the name of a class", hint)
    if len(set(value)) < len(value):
        raise ConfigError(f"{where}: 'classes' names a class twice", hint)
    return tuple(value)


def _operators(
    value: object, where: str, key: str = "operators", example: str = "my_operators.py"
) -> tuple[str, ...]:
    files = [value] if isinstance(value, str) else value
    if files is None:
        return ()
    if not isinstance(files, list) or not all(isinstance(file, str) and file for file in files):
        raise ConfigError(f"{where}: {key!r} must be a list of files", f"{key}: [{example}]")
    return tuple(_checked_file(file, where) for file in files)


def _sources(value: object, where: str) -> tuple[str, ...]:
    files = _operators(value, where, "sources", "my_kernel.c")
    for file in files:
        if not _is_c(file):
            raise ConfigError(f"{where}: {file!r} in 'sources' is not a C file", "sources: [my_kernel.c]")
    return files


def _is_c(file: str) -> bool:
    return file.endswith(".c")


def _label(item: Mapping[str, object], key: str, what: str, example: str, where: str) -> str | None:
    value = item.get(key)
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*", value)):
        return value
    raise ConfigError(f"{where}: {key!r} must be {what}", f"{key}: {example}")


def parse_bytes(text: str, where: str = "") -> int:
    """``20480``, ``20K`` or ``1M`` as bytes."""
    match = re.fullmatch(r"(\d+)\s*(|[kKmM])[iI]?[bB]?", text.strip())
    if not match:
        start = f"{where}: " if where else ""
        raise ConfigError(f"{start}{text!r} is not a number of bytes", "for example 24576, 24K or 1M")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]


def _budget(value: object, where: str) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: 'budget' must be a mapping, found {_kind(value)}", KEYS["budget"])
    _refuse_unknown(value, BUDGETS, f"{where}: budget")
    return {kind: parse_bytes(str(amount), f"{where}: budget") for kind, amount in value.items()}


def _quantize(value: object, where: str) -> dict[str, str]:
    if value is None:
        return {}
    given = request.settings(value, where)
    for key in request.PATHS:
        if key in given:
            given[key] = _checked_file(given[key], where, f"quantize: {key}")
    try:
        request.from_settings(given, Path())
    except ConfigError as error:
        raise ConfigError(f"{where}: quantize: {error.message}", error.hint) from None
    return given


def _frontend(value: object, where: str) -> FrontEnd | None:
    if value is None:
        return None
    from tinyml.features.settings import from_mapping  # numpy, only where it is needed

    return from_mapping(value, where)


def _checked_file(file: str, where: str, key: str = "file") -> str:
    """A manifest is shared through version control: its paths must mean the same on every machine."""
    if "\0" in file:
        raise ConfigError(f"{where}: {key!r} has a NUL character, {file!r}", "a path relative to tinyml.yaml")
    if PurePosixPath(file).is_absolute() or PureWindowsPath(file).drive:
        raise ConfigError(
            f"{where}: {key!r} is an absolute path, {file!r}",
            "a path relative to tinyml.yaml, so that the application builds on other machines too",
        )
    return file.replace("\\", "/")


def parse_shapes(given: Iterable[str], where: str) -> dict[str, str]:
    """``["audio=1x16x8"]`` as shapes by input name."""
    shapes = {}
    for item in given:
        name, equals, shape = (part.strip() for part in item.rpartition("="))
        if not equals or not name:
            raise ConfigError(f"{where}: {item!r} does not name an input", "input=1x16x8")
        shapes[name] = shape
    return checked_shapes(shapes, where)


def checked_shapes(value: object, where: str) -> dict[str, str]:
    """Shapes by input name, as ``1x16x8``; also accepts lists."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: 'shapes' must be a mapping, found {_kind(value)}", KEYS["shapes"])
    shapes = {}
    for name, shape in value.items():
        text = "x".join(map(str, shape)) if isinstance(shape, list) else str(shape)
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
            raise ConfigError(f"{where}: {text!r} is not a shape for {name!r}", "1x16x8, or [1, 16, 8]")
        shapes[str(name)] = text
    return shapes


def _refuse_unknown(mapping: Mapping[object, object], allowed: tuple[str, ...], where: str) -> None:
    for key in mapping:
        if key not in allowed:
            close = difflib.get_close_matches(str(key), allowed, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(allowed)}"
            raise ConfigError(f"{where}: unknown key {str(key)!r}", hint)


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a string", bool: "yes/no", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")
