# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The figures of samples/writer, int8 and float: the table of docs/decoders.md, and that of the sample."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from tinyml.cores.machines import MACHINES
from tinyml.harness import Result, run_files
from tinyml.pipeline import Compiled, Options, compile_model
from tools.environment import ROOT

SAMPLE = ROOT / "samples" / "writer"
MODELS = {"int8": "model.onnx", "float": "model_float.onnx"}
M4 = "qemu-cortex-m4"
CORES = {
    "Cortex-M3, without an FPU": "qemu-cortex-m3",
    "Cortex-M4": M4,
    "Cortex-M7": "qemu-cortex-m7",
    "Cortex-M55": "qemu-cortex-m55",
}


def compiled(kind: str, target: str) -> Compiled:
    return compile_model(SAMPLE / MODELS[kind], Options("writer", target, "portable"))


def memory(made: Compiled) -> tuple[int, int, int]:
    """Bytes of the arena, the caches and the weights."""
    states = sum(made.graph.tensors[state.tensor].bytes for state in made.graph.states)
    return made.summary["arena_bytes"], states, made.summary["weights_bytes"]


def counted(made: Compiled, machine: str) -> Result:
    """One run for the first row of the caches, and one for the last."""
    last = made.graph.tensors[made.graph.states[0].tensor].shape[2] - 1
    steps = [{"character": np.array([[1]]), "position": np.array([place])} for place in (0, last)]
    samples = [{name: value.astype(np.int32) for name, value in step.items()} for step in steps]
    return run_files(made.files, machine, samples)


def decoder_table() -> Iterator[str]:
    yield "| Core | model | arena | caches | weights | instructions, first character | last character |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for title, machine in CORES.items():
        for kind in MODELS:
            made = compiled(kind, MACHINES[machine].target.name)
            counts = counted(made, machine).instructions or [0, 0]
            yield f"| {title} | {kind} | {' | '.join(f'{n:,}' for n in (*memory(made), *counts))} |"


def bits() -> dict[str, str]:
    """What held_back.py of the sample prints: the bits of a character, by the model's file."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin")}
    command = [sys.executable, "held_back.py"]
    said = subprocess.run(command, cwd=SAMPLE, env=environment, check=True, capture_output=True, text=True)
    lines = (line.split(": ") for line in said.stdout.splitlines())
    return {name: words.split()[0] for name, words in lines}


def sample_table() -> Iterator[str]:
    """Both models beside each other on a Cortex-M4, as a table of reStructuredText."""
    columns, needed = [], bits()
    for kind, name in MODELS.items():
        made = compiled(kind, MACHINES[M4].target.name)
        found = counted(made, M4)
        counts, parts = found.instructions or [0, 0], found.footprint
        assert parts is not None
        arena, caches, _ = memory(made)
        sizes = (parts.total.flash, caches, arena, *counts)
        columns.append((kind, needed[name], *(f"{size:,}" for size in sizes)))
    heads = (
        "on a Cortex-M4",
        "bits per character held back",
        "flash, bytes",
        "caches, bytes",
        "arena, bytes",
        "instructions, first character",
        "instructions, last character",
    )
    yield from table([heads, *columns])


def table(columns: list[tuple[str, ...]]) -> Iterator[str]:
    """A simple table; the first row is the head."""
    widths = [max(map(len, column)) for column in columns]
    border = "  ".join("=" * width for width in widths)
    rows = list(zip(*columns, strict=True))
    for number, row in enumerate(rows):
        if number < 2:
            yield border
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join((row[0].ljust(widths[0]), *cells))
    yield border
