# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One model on one machine: compile, run once on a fixed pattern, read the counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from tinyml import harness
from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost.cycles import Cycles, Execute, Unknown, run_files
from tinyml.datasets import arrays
from tinyml.harness.footprint import CMSIS_NN, LIBRARY, MODEL, RUNTIME
from tinyml.ir import Graph
from tinyml.pipeline import LIBRARIES, Options, compile_model
from tinyml.settings.optimize import BALANCED, GOALS
from tinyml.setup.workspace import find_cmsis_nn

ARENA = str(Options().io)


@dataclass(frozen=True)
class Row:
    """What was measured. The parts add up to ``flash_bytes`` and ``ram_bytes``."""

    model: str
    sha256: str
    machine: str
    kernels: str
    optimize: str
    macs: int
    instructions: int
    constants_bytes: int  # weights, tables, descriptions
    kernels_bytes: int  # code of the runtime and of CMSIS-NN
    glue_bytes: int  # code generated for the model
    library_bytes: int  # what the compiler's C library adds
    arena_bytes: int
    arena_lower_bound_bytes: int
    state_bytes: int
    other_ram_bytes: int  # variables other than arena and state
    stack_bytes: int
    output: str  # the first bytes of the first output, in hexadecimal
    cycles: int | None = None  # an estimate: see tinyml.cost
    cycles_note: str = ""  # why there is none
    io: str = ARENA

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return self.sha256, self.machine, self.kernels, self.optimize, self.io

    @property
    def code_bytes(self) -> int:
        return self.kernels_bytes + self.glue_bytes + self.library_bytes

    @property
    def flash_bytes(self) -> int:
        return self.constants_bytes + self.code_bytes

    @property
    def ram_bytes(self) -> int:
        """Without the stack, which every firmware has."""
        return self.arena_bytes + self.state_bytes + self.other_ram_bytes

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Any) -> Row:
        """Raises KeyError or TypeError for anything else."""
        wanted = [f for f in fields(Row) if f.default is MISSING or f.name in data]
        return Row(**{f.name: data[f.name] for f in wanted})


OUTPUT_BYTES = 16
CHOICES = ("auto", *LIBRARIES)
"""Choices of kernels: ``auto`` is the default for users, including CMSIS-NN if it is found."""


def measure(
    path: Path,
    machine: str,
    kernels: str,
    options: Options,
    optimize: str = "-O2",
    inspect: Callable[[Graph, Execute], None] | None = None,
) -> Row:
    """Compile ``path`` for a machine that counts instructions, run it once, and add up the costs.

    ``optimize``: what to spend, a key of GOALS; or the C compiler's option, for what is compiled by default.
    ``inspect`` gets the graph, and may run the image on other samples before it is measured.
    """
    place = counting(machine)
    has_cmsis_nn = kernels == "auto" and find_cmsis_nn() is not None
    wanted = Options(
        options.name,
        place.target.name,
        kernels,
        shapes=options.shapes,
        cmsis_nn=has_cmsis_nn,
        io=options.io,
        optimize=optimize if optimize in GOALS else BALANCED.name,
    )
    flag = GOALS[optimize].flag if optimize in GOALS else optimize
    compiled = compile_model(path, wanted)
    inputs = arrays.pattern_inputs(compiled.graph)
    result, estimate = run_files(
        compiled.files,
        machine,
        [inputs],
        reset_before={0},
        options=harness.Options(optimize=flag),
        inspect=partial(inspect, compiled.graph) if inspect else None,
    )
    return row_of(
        path,
        compiled.summary,
        machine,
        (kernels, optimize, str(options.io)),
        result,
        estimate,
    )


def row_of(
    path: Path,
    summary: Mapping[str, Any],
    machine: str,
    how: tuple[str, str, str],
    result: harness.Result,
    estimate: Cycles | Unknown,
) -> Row:
    """The costs of a run. ``how``: kernels, optimisation, and how inputs and outputs are passed."""
    if result.instructions is None or result.footprint is None or result.stack_bytes is None:
        raise ToolError(f"{machine} returned no measurements")
    kernels, optimize, io = how
    parts = result.footprint
    first = summary["outputs"][0]["name"]
    return Row(
        model=title(path),
        sha256=summary["sha256"],
        machine=machine,
        kernels=kernels,
        optimize=optimize,
        macs=summary["macs"],
        instructions=result.instructions[0],
        constants_bytes=parts.weights_bytes,
        kernels_bytes=parts.part(RUNTIME).flash + parts.part(CMSIS_NN).flash,
        glue_bytes=parts.part(MODEL).flash - parts.weights_bytes,
        library_bytes=parts.part(LIBRARY).flash,
        arena_bytes=summary["arena_bytes"],
        arena_lower_bound_bytes=summary["arena_lower_bound_bytes"],
        state_bytes=summary["state_bytes"],
        other_ram_bytes=parts.total.ram - summary["arena_bytes"] - summary["state_bytes"],
        stack_bytes=result.stack_bytes,
        output=result.outputs[0][first].tobytes()[:OUTPUT_BYTES].hex(),
        cycles=estimate.total if isinstance(estimate, Cycles) else None,
        cycles_note=estimate.why if isinstance(estimate, Unknown) else "",
        io=io,
    )


def counting(machine: str) -> harness.Machine:
    """A machine that counts instructions."""
    place = harness.find_machine(machine)
    if place.clock is None:
        raise ConfigError(
            f"{machine} does not count instructions",
            f"one of: {', '.join(name for name, m in harness.MACHINES.items() if m.clock)}",
        )
    return place


def title(path: Path) -> str:
    """A readable name: the file's, or the folder's if the file is just called "model"."""
    return path.resolve().parent.name if path.stem == "model" else path.stem


def kernel_choices(wanted: str) -> list[str]:
    """A list separated by commas."""
    choices = [word for word in wanted.split(",") if word]
    if not choices or not set(choices) <= set(CHOICES):
        raise ConfigError(f"--kernels {wanted!r}", f"{', '.join(CHOICES)}, or several separated by commas")
    return choices
