# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Commands of GDB for the models of a build: their layers, and tensors by name. Runs inside GDB.

    (gdb) source build/tinyml/gdb.py
    (gdb) tinyml layers                 the layers of all models
    (gdb) tinyml break kws 3            stop before layer 3, or before the layer of that name
    (gdb) tinyml tensor kws conv2       the tensor of that name, which the stopped program has in its arena
    (gdb) tinyml arena kws              which tensors are in the arena before and after a layer

Standard library only: GDB brings a Python of its own.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import gdb  # type: ignore[import-not-found,import-untyped,unused-ignore]

FORMATS = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "bool": "?",
}
MOST = 64  # values that are printed


def folders() -> list[Path]:
    """Where the build has the generated C of its models."""
    image = Path(gdb.current_progspace().filename or ".").resolve()
    for folder in (image.parent.parent, image.parent):
        found = [path.parent for path in sorted((folder / "tinyml").glob("*/*_report.json"))]
        if found:
            return found
    raise gdb.GdbError("no reports of models beside this image: load the zephyr.elf of a west build")


def model_of(name: str) -> tuple[dict[str, Any], Path]:
    """The report of a model, or of the only one."""
    known = {folder.name: folder for folder in folders()}
    if not name and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        raise gdb.GdbError(f"no model {name!r}; the image has {', '.join(known)}")
    report = json.loads((known[name] / f"{name}_report.json").read_text(encoding="utf-8"))
    return report, known[name]


def layer_of(report: dict[str, Any], words: str) -> dict[str, Any]:
    """A layer by its number or name; part of a name will do if only one layer has it."""
    layers: list[dict[str, Any]] = report["layers"]
    if words.isdecimal() and int(words) < len(layers):
        return layers[int(words)]
    same = [layer for layer in layers if layer["name"] == words]
    found = same or [layer for layer in layers if words and words in layer["name"]]
    if len(found) != 1:
        raise gdb.GdbError(f"{len(found)} layers are called {words!r}; `tinyml layers` lists them")
    return found[0]


def values(tensor: dict[str, Any], address: int) -> list[Any]:
    form = FORMATS[tensor["dtype"]]
    data = bytes(gdb.selected_inferior().read_memory(address, tensor["bytes"]))
    count = len(data) // struct.calcsize(form)
    return list(struct.unpack(f"<{count}{form}", data[: count * struct.calcsize(form)]))


def scale_of(report: dict[str, Any], name: str) -> tuple[float, int] | None:
    """Scale and zero point of a tensor, if it has one of each."""
    for layer in report["layers"]:
        for operand in layer["operands"]:
            if operand["name"] == name and len(operand["scales"]) == len(operand["zero_points"]) == 1:
                return operand["scales"][0], operand["zero_points"][0]
    return None


class Tinyml(gdb.Command):  # type: ignore[misc,unused-ignore]
    """Models of tinyml: layers, break MODEL LAYER, tensor MODEL NAME, arena MODEL [LAYER]."""

    def __init__(self) -> None:
        super().__init__("tinyml", gdb.COMMAND_DATA)

    def complete(self, text: str, word: str) -> list[str]:
        return [verb for verb in ("layers", "break", "tensor", "arena") if verb.startswith(text)]

    def invoke(self, argument: str, from_tty: bool) -> None:
        verb, *words = gdb.string_to_argv(argument) or ["layers"]
        known = {"layers": layers, "break": stop_before, "tensor": tensor, "arena": arena}
        if verb not in known:
            raise gdb.GdbError(f"tinyml has no command {verb!r}; one of {', '.join(known)}")
        known[verb](*_named(words))


def _named(words: list[str]) -> tuple[str, str]:
    """The model and the rest; with one model, its name may be left out."""
    names = [folder.name for folder in folders()]
    if words and words[0] in names:
        return words[0], " ".join(words[1:])
    return (names[0] if len(names) == 1 else "", " ".join(words))


def layers(name: str, _rest: str) -> None:
    for model in [name] if name else [folder.name for folder in folders()]:
        report, _ = model_of(model)
        for layer in report["layers"]:
            shape = "x".join(map(str, layer["shape"]))
            free = " (shares memory)" if layer["free"] else ""
            print(f"{model} {layer['step']:>3}  {layer['label']} {shape}  {layer['name']}{free}")


def stop_before(name: str, rest: str) -> None:
    report, folder = model_of(name)
    layer = layer_of(report, rest)
    source = folder / f"{report['model']}.c"
    call = re.compile(rf"\bTINYML_LAYER\({layer['step']},")
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if call.search(line):
            gdb.execute(f"break {source.name}:{number}")
            return
    raise gdb.GdbError(f"layer {layer['step']} does no work: it shares memory; stop before the next one")


def tensor(name: str, rest: str) -> None:
    report, _ = model_of(name)
    found = [one for one in report["tensors"] if one["name"] == rest]
    found = found or [one for one in report["tensors"] if rest and rest in one["name"]]
    if not found:
        known = ", ".join(one["name"] for one in report["tensors"])
        raise gdb.GdbError(f"no tensor {rest!r} in the arena; there are {known}")
    for one in found:
        address = int(gdb.parse_and_eval(f"(unsigned long)&{report['model']}_arena")) + one["offset"]
        shape = "x".join(map(str, one["shape"]))
        lives = f"from layer {one['first']} to {one['last']}"
        print(f"{one['name']}: {shape} {one['dtype']} at {address:#x}, {lives}")
        _print(values(one, address), one["shape"], scale_of(report, one["name"]))


def _print(numbers: list[Any], shape: list[int], scale: tuple[float, int] | None) -> None:
    width = shape[-1] if shape and 1 < shape[-1] <= 16 else 8
    for start in range(0, min(len(numbers), MOST), width):
        row = numbers[start : start + width]
        real = [f"{one:.6g}" if isinstance(one, float) else str(int(one)) for one in row]
        if scale:
            real += ["="] + [f"{scale[0] * (one - scale[1]):.4g}" for one in row]
        print(f"  {start:>5}  {' '.join(real)}")
    if len(numbers) > MOST:
        print(f"  … {len(numbers) - MOST} more")


def arena(name: str, rest: str) -> None:
    report, _ = model_of(name)
    step = layer_of(report, rest)["step"] if rest else None
    print(f"{report['model']}: {report['arena_bytes']} bytes")
    for one in report["tensors"]:
        if step is None or one["first"] <= step <= one["last"]:
            end = one["offset"] + one["bytes"]
            print(f"  {one['offset']:>7} to {end:>7}  layers {one['first']} to {one['last']}  {one['name']}")


Tinyml()
print("tinyml: layers, break MODEL LAYER, tensor MODEL NAME, arena MODEL [LAYER]")
