# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Many compiled models in one program on the host, under sanitizers: what makes thousands of cases quick.

    outcomes = run_batch([Item("add_1", compiled.files, [{"x": array}]), ...])
    outcomes["add_1"].outputs[0]["y"]   # or outcomes["add_1"].failure says why there are none

Models are compiled in groups, as one source each; a group that does not compile is taken apart to
find the culprit. Each model runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinyml.base.errors import ToolError
from tinyml.harness.arena_check import port_header, ranges_of
from tinyml.harness.objects import Unit, compile_all, excerpt
from tinyml.harness.program_build import HARNESS_C, RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler
from tinyml.ir import Array
from tinyml.ir.row_order import RowOrder

MAIN = Path(__file__).parent / "batch.c"
FLAGS = ("-std=c11", "-O1", *WARNINGS, *SANITIZERS)
PLAIN_LAYER = "#define TINYML_WRAP_LAYER(index, call) call\n"
MAIN_FLAGS = ("-std=gnu11", "-O1", *SANITIZERS)


@dataclass(frozen=True)
class Item:
    """A compiled model (``Compiled.files``) and what to run it on, by input name; state is kept."""

    name: str  # the C prefix it was compiled with; different for each item of a batch
    files: Mapping[str, str]
    samples: Sequence[Mapping[str, Array]]

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads(self.files[f"{self.name}.json"])
        return summary


@dataclass(frozen=True)
class Outcome:
    """Outputs by name, one set for each sample; or what went wrong."""

    outputs: Sequence[Mapping[str, Array]] = ()
    failure: str = ""


@dataclass
class _Program:
    """The items that compile, and their objects."""

    items: list[Item] = field(default_factory=list)
    objects: list[Path] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


def run_batch(items: Sequence[Item], *, group: int = 16, timeout_seconds: float = 600) -> dict[str, Outcome]:
    """Compile, link and run all ``items``; outcomes by item name."""
    if not items:
        return {}
    with tempfile.TemporaryDirectory(prefix="tinyml-batch-") as name:
        folder = Path(name)
        program = _compile(items, folder, group)
        outcomes = {name: Outcome(failure=text) for name, text in program.failures.items()}
        if program.items:
            image = _link(program, folder)
            outcomes.update(_run(image, program.items, folder, timeout_seconds))
        return outcomes


def _compile(items: Sequence[Item], folder: Path, group: int) -> _Program:
    program = _Program()
    groups = [items[start : start + group] for start in range(0, len(items), group)]
    units = [_unit(folder, f"group{number}.c", part) for number, part in enumerate(groups)]
    try:
        program.objects = compile_all(host_compiler(), units)
        program.items = list(items)
        return program
    except ToolError:
        pass  # somewhere in there; find out where
    for part, unit in zip(groups, units, strict=True):
        try:
            program.objects += compile_all(host_compiler(), [unit])
            program.items += part
            continue
        except ToolError:
            pass
        for item in part:
            try:
                program.objects += compile_all(host_compiler(), [_unit(folder, f"{item.name}.c", [item])])
                program.items.append(item)
            except ToolError as error:
                program.failures[item.name] = error.message
    return program


def _unit(folder: Path, name: str, items: Sequence[Item]) -> Unit:
    """The sources of some models as one file, without includes of their own."""
    source = folder / name
    source.write_text("\n".join(_single_file(item) + "\n#undef AT\n" for item in items), encoding="utf-8")
    return Unit(source, "batch", FLAGS, (RUNTIME_INCLUDE, HARNESS_C))


def _single_file(item: Item) -> str:
    """A model's source with its headers in it, and with the check of every layer's bytes before it."""

    def content(match: re.Match[str]) -> str:
        return item.files[match.group(1)]

    source = re.sub(r'^#include "([^"]+)"$', content, item.files[f"{item.name}.c"], flags=re.MULTILINE)
    check = port_header(item.name, ranges_of(item.summary))
    return f"#include <tinyml/tinyml.h>\n{check}{source}\n#undef TINYML_WRAP_LAYER\n{PLAIN_LAYER}"


def _link(program: _Program, folder: Path) -> Path:
    compiler = host_compiler()
    names = [item.name for item in program.items]
    table = folder / "table.c"
    table.write_text(
        "#include <tinyml/tinyml.h>\n"
        + "".join(f"extern const struct tinyml_model {name}_model;\n" for name in names)
        + "const struct tinyml_model *const batch_models[] = {\n"
        + "".join(f"\t&{name}_model,\n" for name in names)
        + f"}};\nconst int batch_count = {len(names)};\n",
        encoding="utf-8",
    )
    runtime = sorted({source for item in program.items for source in item.summary["sources"]["runtime"]})
    kernels = (RUNTIME_C, RUNTIME_INCLUDE)  # kernels include headers of other families
    units = [Unit(RUNTIME_C / name, "batch", FLAGS, kernels) for name in runtime]
    units += [Unit(path, "batch", MAIN_FLAGS, (RUNTIME_INCLUDE,)) for path in (MAIN, table)]
    image = folder / "image"
    objects = [*program.objects, *compile_all(compiler, units)]
    command = [str(compiler.path), *SANITIZERS, *map(str, objects), "-lm", "-o", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"cannot link the batch:\n{excerpt(done.stderr)}")
    return image


def _run(image: Path, items: Sequence[Item], folder: Path, timeout_seconds: float) -> dict[str, Outcome]:
    for index, item in enumerate(items):
        (folder / f"{index}.in").write_bytes(_encode(item))
    done = subprocess.run(
        [str(image)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        timeout=timeout_seconds,
        check=False,
    )
    statuses = [int(line) for line in done.stdout.split()]
    if done.returncode != 0 or len(statuses) != len(items):
        raise ToolError(f"the batch ended early:\n{excerpt(done.stderr)}")
    outcomes = {}
    for index, (item, status) in enumerate(zip(items, statuses, strict=True)):
        if status == 0:
            outcomes[item.name] = Outcome(_decode(item, (folder / f"{index}.out").read_bytes()))
        else:
            said = excerpt((folder / f"{index}.err").read_text(errors="replace"), 12)
            outcomes[item.name] = Outcome(failure=f"exit status {status}: {said}")
    return outcomes


def _encode(item: Item) -> bytes:
    ports, order = item.summary["inputs"], RowOrder.of_summary(item.summary.get("rows", {}))
    chunks = [struct.pack("<I", len(item.samples))]
    for sample in item.samples:
        for port in ports:
            array = np.asarray(sample[port["name"]])
            assert array.dtype == np.dtype(port["dtype"]), f"{item.name}: {port['name']} is {array.dtype}"
            assert array.shape == tuple(port["shape"]), f"{item.name}: {port['name']} is {array.shape}"
            arranged = order.arranged(array) if order else np.ascontiguousarray(array)
            chunks.append(arranged.tobytes())
    return b"".join(chunks)


def _decode(item: Item, content: bytes) -> list[dict[str, Array]]:
    offset = 0
    results = []
    for _ in item.samples:
        arrays = {}
        for port in item.summary["outputs"]:
            flat = np.frombuffer(content[offset : offset + port["bytes"]], port["dtype"])
            arrays[port["name"]] = flat.reshape(port["shape"])
            offset += port["bytes"]
        results.append(arrays)
    assert offset == len(content), f"{item.name}: {len(content)} bytes came out instead of {offset}"
    return results
