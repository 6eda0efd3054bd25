# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Generated C as a WebAssembly module, by clang and wasi-libc."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tinyml.harness.footprint import HARNESS, MODEL
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import Options, library_units, link
from tinyml.harness.tools import web_compiler
from tinyml.pipeline import Compiled, write_folder

TARGET = "--target=wasm32-wasi"
STACK_BYTES = 1 << 18
PORTION_VALUES = 1 << 14
"""Samples that a page hands over at once; NAME_feed() may take fewer."""


def module(compiled: Compiled) -> bytes:
    """The model as a module with the exports of web.c: ``input``, ``run``, ``output`` and others."""
    compiler = web_compiler()
    with tempfile.TemporaryDirectory(prefix="west-tinyml-") as name:
        folder = Path(name)
        write_folder(compiled, folder)
        model = read_generated(folder)
        ours, includes, units = library_units(model, (TARGET,), Options())
        glue = (*ours, *(f"-D{define}" for define in _defines(model, compiled)))
        units += [
            Unit(model.source, MODEL, ours, includes),
            Unit(Path(__file__).parent / "c" / "web.c", HARNESS, glue, (*includes, folder)),
        ]
        objects = compile_all(compiler, units)
        file = folder / "model.wasm"
        flags = (TARGET, "-nostartfiles", "-Wl,--no-entry", "-Wl,--gc-sections", "-Wl,--strip-all")
        stack = ("-Wl,--stack-first", f"-Wl,-z,stack-size={STACK_BYTES}")
        link(compiler, [*flags, *stack, *map(str, objects), "-lm", "-o", str(file)])
        return file.read_bytes()


def _defines(model: Generated, compiled: Compiled) -> list[str]:
    found = [f"TINYML_WEB_MODEL={model.name}_model"]
    if frontend := compiled.summary.get("frontend"):
        found += [
            f'TINYML_WEB_HEADER="{model.name}.h"',
            f"TINYML_WEB_FEED={model.name}_feed",
            f"TINYML_WEB_FEED_RESET={model.name}_feed_reset",
            f"TINYML_WEB_SAMPLE={frontend['sample']}",
            f"TINYML_WEB_AXES={frontend['axes']}",
            f"TINYML_WEB_PORTION={PORTION_VALUES}",
        ]
    return found
