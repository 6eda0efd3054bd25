# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The files of a new application around a model: for Zephyr, for PlatformIO, or for a Makefile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text
from tinyml.base.templates import render
from tinyml.cores.targets import find_target
from tinyml.ir import Array, DType
from tinyml.projects.editor import editor_files
from tinyml.projects.sources import STOPPED, source_files
from tinyml.projects.twister import LICENCE, PLATFORMS, UNDEFINED

ZEPHYR, PLATFORMIO, BARE_METAL = "zephyr", "platformio", "bare-metal"
MOST_SCORES = 256  # of the first output that the program looks at


@dataclass(frozen=True)
class Sample:
    """An input, and the real numbers of the first output that a computer computes from it."""

    inputs: Sequence[Array]
    scores: Array
    origin: str
    rows: Sequence[Array] = ()  # real numbers of the first input, of several samples


@dataclass(frozen=True)
class Plan:
    """What the application is for. ``platform`` and ``framework`` are PlatformIO's."""

    kind: str
    app: str
    name: str  # of the model
    file: str
    target: str
    board: str = ""
    platform: str = ""
    framework: str = ""
    options: str = ""  # of `tinyml compile`, for a Makefile, as a shell reads them
    source: str = ""  # of the inputs: one of sources.SOURCES, or empty for one sample


def application_files(
    plan: Plan,
    summary: Mapping[str, Any],
    sample: Sample,
    labels: Sequence[str] = (),
    rows: Sequence[Array] = (),
) -> dict[str, bytes]:
    """All files by path except the model, tinyml.yaml and its test.

    ``labels``: the names of the classes. ``rows``: more inputs, for a program that goes through a table.
    """
    context = _context(plan, summary, sample, labels)
    files = {path: text.encode() for path, text in _texts(plan, context).items()}
    if plan.source:
        files.pop("src/sample.h")
        files |= source_files(plan.source, context, summary, rows)
    return files


def _texts(plan: Plan, context: Mapping[str, Any]) -> dict[str, str]:
    arduino = bool(context["arduino"])
    files = {
        "src/main.cpp" if arduino else "src/main.c": render("projects", "app_main.c.j2", context),
        "src/sample.h": render("projects", "app_sample.h.j2", context),
        "README.md": render("projects", "app_readme.md.j2", context),
        "AGENTS.md": render("projects", "app_agents.md.j2", context),
    }
    if plan.kind == ZEPHYR:
        files |= {
            "CMakeLists.txt": render("projects", "app_cmake.txt.j2", context),
            "prj.conf": f"{LICENCE}\nCONFIG_MAIN_STACK_SIZE=4096\n{UNDEFINED}\n",
            "sample.yaml": render("projects", "app_sample.yaml.j2", context),
            **editor_files(plan.name, plan.board),
            ".gitignore": "/build/\n/twister-out*/\n",
        }
    elif plan.kind == PLATFORMIO:
        files |= {
            "platformio.ini": render("projects", "app_platformio.ini.j2", context),
            "tinyml_build.py": render("projects", "app_platformio_build.py.j2", context),
            ".gitignore": "/.pio/\n",
        }
        if plan.framework == ZEPHYR:
            files["zephyr/prj.conf"] = f"{LICENCE}\nCONFIG_MAIN_STACK_SIZE=4096\n"
    else:
        files |= {
            "Makefile": render("projects", "app_makefile.j2", context),
            ".gitignore": "/build/\n/generated/\n",
        }
    return files


def _context(plan: Plan, summary: Mapping[str, Any], sample: Sample, labels: Sequence[str]) -> dict[str, Any]:
    elements = int(np.prod(summary["outputs"][0]["shape"], dtype=int))
    scores = min(elements, MOST_SCORES)
    target = find_target(plan.target)
    here = plan.target in ("host", "generic")
    tools = "" if here else "arm-none-eabi-" if target.arm else "riscv64-unknown-elf-"
    return {
        "kind": plan.kind,
        "source": plan.source,
        "stopped": STOPPED.get(plan.source, ""),
        "app": plan.app,
        "name": plan.name,
        "macro": plan.name.upper(),
        "one_output": len(summary["outputs"]) == 1,
        "file": plan.file,
        "board": plan.board,
        "environment": plan.board.replace("/", "_"),
        "platform": plan.platform,
        "framework": plan.framework,
        "arduino": plan.framework == "arduino",
        "target": plan.target,
        "compiler": f"{tools}gcc",
        "archiver": f"{tools}ar",
        "flags": " ".join(target.gcc_flags),
        "options": c.code([plan.options.replace("$", "$$")])[0],
        "machine": _machine(plan.target),
        "platforms": list(dict.fromkeys((*PLATFORMS, *([plan.board] if plan.board else [])))),
        "ram": f"{summary['arena_bytes'] + summary['state_bytes']:,}",
        "weights": f"{summary['weights_bytes']:,}",
        "tensors": [
            {
                "kind": kind[:-1],
                "name": tensor["name"],
                "shape": shape_text(tensor["shape"]),
                "dtype": tensor["dtype"],
            }
            for kind in ("inputs", "outputs")
            for tensor in summary[kind]
        ],
        "scores": scores,
        "labels": len(labels) == scores == elements,
        "decision": int(np.argmax(sample.scores[:scores])),
        "result": c.code([f"{float(sample.scores[0]):.6f}f"])[0],
        "origin": sample.origin,
        "inputs": [f"sample_{index}" for index in range(len(sample.inputs))],
        "tables": [
            {
                "name": f"sample_{index}",
                "c_type": DType.of(array).c,
                "length": array.size,
                "rows": c.code(c.table_rows(array)),
            }
            for index, array in enumerate(sample.inputs)
        ],
    }


def _machine(target: str) -> str:
    """The machine that emulates a core, or the host."""
    from tinyml.cores.machines import MACHINES

    found = (name for name, machine in MACHINES.items() if machine.target.name == target)
    return next(found, "host")
