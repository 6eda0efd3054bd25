# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The keys of a model in ``tinyml.yaml``, and the checks of their values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from tinyml.accelerators import ACCELERATORS, LISTED, unknown
from tinyml.app import evaluation
from tinyml.errors import ConfigError
from tinyml.goals import GOALS
from tinyml.quantize import request

if TYPE_CHECKING:
    from tinyml.features.settings import FrontEnd

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


def io(value: object, where: str) -> str | None:
    if value is None or value in IO:
        return None if value is None else str(value)
    raise ConfigError(f"{where}: 'io' cannot be {value!r}", f"io: {' or '.join(IO)}, or no such line")


def npu(value: object, where: str) -> str:
    if value is None:
        return ""
    if value not in ACCELERATORS:
        raise ConfigError(f"{where}: {unknown(value)}", LISTED)
    return str(value)


def evaluate(value: object, where: str) -> evaluation.Evaluate | None:
    found = evaluation.from_yaml(value, where)
    if found is not None:
        for key in evaluation.PATHS:
            if key in found.given:
                relative_path(found.given[key], where, f"evaluate: {key}")
    return found


def classes(value: object, where: str) -> tuple[str, ...]:
    """Names of classes; YAML reads yes, no and numbers as something else than words."""
    if value is None:
        return ()
    hint = 'classes: [circle, "yes", "7"], each once; names have no comma or semicolon'
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where}: 'classes' must be a list of names, found {kind(value)}", hint)
    for name in value:
        if not isinstance(name, str) or not name.strip() or set(name) & set(",;\n\0"):
            raise ConfigError(f"{where}: {name!r} cannot be the name of a class", hint)
    if len(set(value)) < len(value):
        raise ConfigError(f"{where}: 'classes' names a class twice", hint)
    return tuple(value)


def relative_paths(
    value: object, where: str, key: str = "operators", example: str = "my_operators.py"
) -> tuple[str, ...]:
    files = [value] if isinstance(value, str) else value
    if files is None:
        return ()
    if not isinstance(files, list) or not all(isinstance(file, str) and file for file in files):
        raise ConfigError(f"{where}: {key!r} must be a list of files", f"{key}: [{example}]")
    return tuple(relative_path(file, where) for file in files)


def sources(value: object, where: str) -> tuple[str, ...]:
    files = relative_paths(value, where, "sources", "my_kernel.c")
    for file in files:
        if not is_c(file):
            raise ConfigError(f"{where}: {file!r} in 'sources' is not a C file", "sources: [my_kernel.c]")
    return files


def is_c(file: str) -> bool:
    return file.endswith(".c")


def label(item: Mapping[str, object], key: str, what: str, example: str, where: str) -> str | None:
    value = item.get(key)
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*", value)):
        return value
    raise ConfigError(f"{where}: {key!r} must be {what}", f"{key}: {example}")


def parse_bytes(text: str, where: str = "") -> int:
    """``20480``, ``20K`` or ``1M`` as bytes."""
    match = re.fullmatch(r"(\d{1,18})\s*(|[kKmM])[iI]?[bB]?", text.strip())
    if not match:
        start = f"{where}: " if where else ""
        raise ConfigError(f"{start}{text!r} is not a number of bytes", "for example 24576, 24K or 1M")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]


def budget(value: object, where: str) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: 'budget' must be a mapping, found {kind(value)}", KEYS["budget"])
    refuse_unknown(value, BUDGETS, f"{where}: budget")
    return {kind: parse_bytes(str(amount), f"{where}: budget") for kind, amount in value.items()}


def quantize(value: object, where: str) -> dict[str, str]:
    if value is None:
        return {}
    given = request.settings(value, where)
    for key in request.PATHS:
        if key in given:
            given[key] = relative_path(given[key], where, f"quantize: {key}")
    try:
        request.from_settings(given, Path())
    except ConfigError as error:
        raise ConfigError(f"{where}: quantize: {error.message}", error.hint) from None
    return given


def frontend(value: object, where: str) -> FrontEnd | None:
    if value is None:
        return None
    from tinyml.features.settings import from_mapping  # numpy, only where it is needed

    return from_mapping(value, where)


def relative_path(file: str, where: str, key: str = "file") -> str:
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
        raise ConfigError(f"{where}: 'shapes' must be a mapping, found {kind(value)}", KEYS["shapes"])
    shapes = {}
    for name, shape in value.items():
        text = "x".join(map(str, shape)) if isinstance(shape, list) else str(shape)
        if not re.fullmatch(r"[1-9]\d{0,17}(x[1-9]\d{0,17})*", text):
            raise ConfigError(f"{where}: {text!r} is not a shape for {name!r}", "1x16x8, or [1, 16, 8]")
        shapes[str(name)] = text
    return shapes


def refuse_unknown(mapping: Mapping[object, object], allowed: tuple[str, ...], where: str) -> None:
    for key in mapping:
        if key not in allowed:
            close = difflib.get_close_matches(str(key), allowed, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(allowed)}"
            raise ConfigError(f"{where}: unknown key {str(key)!r}", hint)


def kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a string", bool: "yes/no", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")
