# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run a compiled model on a machine and measure it."""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import Board, Machine, find_machine
from tinyml.harness import faults, tools
from tinyml.harness.footprint import Footprint
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.objects import excerpt
from tinyml.harness.profile import read_calls, read_profile
from tinyml.harness.program_build import Image, Options, build
from tinyml.harness.samples import Cost, Results, decode, encode
from tinyml.ir import Array

LOG = logging.getLogger(__name__)
EXIT_FAULT = 3


@dataclass(frozen=True)
class Result:
    """Outputs and measurements. The host does not count, so its measurements are None."""

    outputs: list[dict[str, Array]]  # one per sample, by tensor name
    instructions: list[int] | None = None  # one per sample
    stack_bytes: int | None = None  # the deepest of all runs
    footprint: Footprint | None = None
    console: str = ""
    layers: dict[int, int] | None = None  # if profiled: instructions by layer, in the last run
    calls: list[int] | None = None  # and the layers in the order in which they were called
    cycles: list[int] | None = None  # of hardware, one per sample


def run(
    folder: Path,
    on: str,
    samples: Sequence[Mapping[str, Array]],
    *,
    reset_before: Collection[int] = (),
    options: Options | None = None,
    timeout_seconds: float = 300,
) -> Result:
    """Build the generated C in ``folder`` for the machine called ``on`` and run it on ``samples``.

    The samples (arrays by input name) run one after the other in one process, so a model keeps its state;
    it is reset before the samples whose index is in ``reset_before``.
    """
    model, machine = read_generated(folder), find_machine(on)
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        image = build(model, machine, Path(scratch), options)
        return execute(image, model, samples, reset_before=reset_before, timeout_seconds=timeout_seconds)


def run_files(
    files: Mapping[str, str],
    on: str,
    samples: Sequence[Mapping[str, Array]],
    *,
    reset_before: Collection[int] = (),
    options: Options | None = None,
    timeout_seconds: float = 300,
) -> Result:
    """``run`` for generated files that are not on disk: their text by name."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        for name, text in files.items():
            (Path(scratch) / name).write_text(text, encoding="utf-8")
        return run(
            Path(scratch),
            on,
            samples,
            reset_before=reset_before,
            options=options,
            timeout_seconds=timeout_seconds,
        )


def execute(
    image: Image,
    model: Generated,
    samples: Sequence[Mapping[str, Array]],
    *,
    reset_before: Collection[int] = (),
    timeout_seconds: float = 300,
) -> Result:
    """Run an image from ``build``; files are exchanged with it in the image's folder."""
    if not samples:
        raise ConfigError("no samples to run", "pass at least one")
    folder, machine = image.path.parent, image.machine
    (folder / "samples.bin").write_bytes(encode(model, samples, reset_before))
    console = _start(image, model, timeout_seconds)
    results = decode(model, (folder / "results.bin").read_bytes(), len(samples))
    for index, cost in enumerate(results.runs):
        if cost.status != 0:
            raise faults.failed_run(model.name, cost.status, index)
    if machine.clock is None:
        return Result(results.outputs, console=console)
    return Result(
        outputs=results.outputs,
        instructions=_instructions(machine, results),
        stack_bytes=max(cost.stack_bytes for cost in results.runs),
        footprint=image.footprint,
        console=console,
        layers=read_profile(console, machine.clock) if image.profiled else None,
        calls=read_calls(console) if image.profiled else None,
    )


def command(image: Image) -> list[str]:
    """The command line that runs an image, in the image's folder."""
    board = image.machine.board
    if board is None:
        return [str(image.path)]
    return [
        *(str(tools.qemu(board.toolchain)), "-machine", board.name, *board.toolchain.emulator_flags),
        *board.options,
        *("-icount", f"shift={board.clock.shift}"),
        *("-display", "none", "-monitor", "none", "-serial", "none"),
        *("-chardev", "stdio,id=console"),
        *("-semihosting-config", "enable=on,target=native,chardev=console"),
        *("-kernel", image.path.name),
        *(
            word
            for name, address in image.loaded
            for word in ("-device", f"loader,file={name},addr={address:#x},force-raw=on")
        ),
    ]


def _instructions(machine: Machine, results: Results) -> list[int]:
    """Instructions of each run, without the cost of the call itself."""
    clock = machine.clock
    assert clock is not None

    def spent(cost: Cost) -> int:
        return clock.instructions(cost.after) - clock.instructions(cost.before)

    calling = spent(results.nothing) - 1  # the empty function is one instruction long
    return [spent(cost) - calling for cost in results.runs]


def _start(image: Image, model: Generated, timeout_seconds: float) -> str:
    """Run the image to completion; returns its output."""
    machine = image.machine
    words = command(image)
    LOG.debug("%s", shlex.join(words))
    try:
        done = subprocess.run(
            words,
            cwd=image.path.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            # Nothing allocates memory, so nothing can leak, and leak detection takes seconds.
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(
            f"{model.name} did not finish on {machine.name} within {timeout_seconds:g} seconds",
            "fewer samples or a longer timeout; if a model never finishes, please report it",
        ) from None
    if done.returncode == 0:
        return done.stdout
    if machine.board and done.returncode == EXIT_FAULT:
        said = _fault(image.path, machine.board, done.stdout)
        raise ToolError(f"{model.name} crashed on {machine.name}: {said}")
    LOG.debug("%s", done.stderr)
    if wrong := faults.wrong_access(done.stderr):
        raise ToolError(f"{model.name} was ended on {machine.name}: {wrong}", "-v prints the whole report")
    said = excerpt(f"{done.stdout}\n{done.stderr}")
    raise ToolError(f"{model.name} failed on {machine.name} with exit status {done.returncode}:\n{said}")


def _fault(image: Path, board: Board, console: str) -> str:
    symbols = tools.symbols(board.toolchain, image)
    limit = next((address for address, name in symbols if name == "image_stack_limit"), 0)
    return faults.explain(faults.registers(console), limit, symbols)
