# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.cost``: what a model costs on a core, without building or running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tinyml.api.choices import Kernels, Optimize, Target
from tinyml.api.compiled import CompiledModel, compile
from tinyml.api.printed_tables import table
from tinyml.api.sources import ModelLike
from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.boards import Board
from tinyml.cores.core_data import SAME_CODE
from tinyml.cores.machines import CORES, MACHINES, Machine
from tinyml.cost import cycles as cycle_models
from tinyml.cost.cycles import Cycles
from tinyml.cost.energy import Energy, energies
from tinyml.cost.error_bars import DOUBTFUL
from tinyml.cost.estimate import errors_of, estimate_for
from tinyml.cost.model import find_model
from tinyml.datasets import arrays
from tinyml.harness import Options, run_files
from tinyml.harness.zephyr.boards import find_board
from tinyml.ir import Shape


@dataclass(frozen=True)
class LayerCost:
    """One layer; ``instructions`` is None if its kernel was never measured."""

    name: str  # of the node in the model
    op: str  # the operator
    kernel: str  # what computes it
    macs: int  # multiply-accumulates
    weights_bytes: int  # its constants
    instructions: int | None  # of one run


@dataclass(frozen=True)
class Cost:
    """Memory is exact; code, instructions and cycles are estimates. What is not known is None."""

    model: str  # its prefix in C
    target: str  # the core
    arena_bytes: int  # RAM for the tensors of one run
    state_bytes: int  # RAM that is kept between runs
    weights_bytes: int  # constants, in flash
    code_bytes: int | None  # estimated
    flash_bytes: int | None  # weights, tables and code
    macs: int  # multiply-accumulates of one run
    instructions: int | None  # of one run
    cycles: int | None  # for memory without wait states
    layers: tuple[LayerCost, ...]  # in the order of execution
    energies: tuple[Energy, ...]  # of one run, on chips with this core whose energy was published
    note: str  # how far the estimates can be off, or why there are none
    board: Board | None = None  # if one was given
    instructions_error: float | None = None  # as a part of them, from held-out layers; None: not known
    counted_on: str = ""  # the emulated core that counted them, if they are no estimate

    @property
    def is_sure(self) -> bool:
        """Whether the instructions were counted, or are estimated well enough to be of use."""
        error = self.instructions_error
        return self.counted_on != "" or (error is not None and error <= DOUBTFUL)

    @property
    def fits(self) -> bool:
        """Whether the board, if one was given, has enough memory."""
        return all(used <= most for _, used, most in self.shares())

    def shares(self) -> list[tuple[str, int, int]]:
        """What the model uses of the board's memory: title, bytes, and how many there are."""
        if self.board is None:
            return []
        flash = self.weights_bytes if self.flash_bytes is None else self.flash_bytes
        found = (
            ("RAM used", self.ram_bytes, self.board.ram_bytes),
            ("flash used", flash, self.board.flash_bytes),
        )
        return [(title, used, most) for title, used, most in found if most]

    @property
    def ram_bytes(self) -> int:
        """Arena and state."""
        return self.arena_bytes + self.state_bytes

    def milliseconds(self, mhz: float) -> float | None:
        """One run at a clock rate; None where the cycles are not known.

        :param mhz: the clock in MHz
        """
        return None if self.cycles is None else cycle_models.milliseconds(self.cycles, mhz)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for files."""
        return asdict(self)

    def rows(self) -> list[tuple[str, int, str]]:
        """Title, figure and unit of all that is known."""
        found = (
            ("arena", self.arena_bytes, "bytes of RAM"),
            ("state", self.state_bytes or None, "bytes of RAM, kept between runs"),
            ("weights", self.weights_bytes, "bytes of flash"),
            ("code", self.code_bytes, "bytes of flash, estimated"),
            ("flash", self.flash_bytes, "bytes: weights, tables and code"),
            ("work", self.macs, "multiply-accumulates per run"),
            ("instructions", self.instructions if self.is_sure else None, self._how()),
            (
                "cycles",
                self.cycles if self.is_sure else None,
                "per run, estimated, for memory without wait states",
            ),
        )
        return [(title, figure, unit) for title, figure, unit in found if figure is not None]

    def _how(self) -> str:
        if self.counted_on:
            return f"per run, counted on {self.counted_on}"
        return f"per run, estimated, ± {self.instructions_error or 0:.0%}"

    def _repr_html_(self) -> str:
        head = (f"{self.model} on {self.target}", "", "")
        energy = [("energy", str(one), one.unit()) for one in self.energies]
        return table([*((title, f"{figure:,}", unit) for title, figure, unit in self.rows()), *energy], head)


def cost(
    model: ModelLike,
    target: Target = "cortex-m3",
    *,
    example: Any = None,
    kernels: Kernels = "auto",
    cmsis_nn: bool = False,
    optimize: Optimize = "balanced",
    shapes: Mapping[str, Shape] | None = None,
    board: str = "",
) -> Cost:
    """Estimate what a model costs on a core, in about the time that compiling it takes.

    The figures rest on measurements of all published models (docs/COSTS.md).

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is, with its own target and options
    :param target: the core
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    :param kernels: where kernels come from, as in ``tinyml.compile``
    :param cmsis_nn: whether the firmware has CMSIS-NN
    :param optimize: what to spend, as in ``tinyml.compile``
    :param shapes: shapes of inputs that the model leaves open: ``{"input": (1, 16, 8)}``; default: 1 for
        each open axis
    :param board: a board by Zephyr's name or PlatformIO's id: gives the target, and ``Cost.fits`` compares
        with its memory
    """
    place = find_board(board) if board else None
    if isinstance(model, CompiledModel):
        return cost_of(model, place)
    compiled = compile(
        model,
        example,
        target=place.target if place else target,
        kernels=kernels,
        optimize=optimize,
        cmsis_nn=cmsis_nn,
        shapes=shapes,
    )
    return cost_of(compiled, place)


def cost_of(compiled: CompiledModel, board: Board | None = None) -> Cost:
    found = estimate_for(compiled.built)
    layers = tuple(
        LayerCost(
            layer["name"],
            layer["op"],
            layer["kernel"],
            layer["macs"],
            layer["weights_bytes"],
            None if found is None or layer["kernel"] in found.unmeasured else found.layers.get(step, 0),
        )
        for step, layer in enumerate(compiled.summary["layers"])
    )
    known = find_model(compiled.target) is not None
    return Cost(
        compiled.name,
        compiled.target,
        compiled.arena_bytes,
        compiled.state_bytes,
        compiled.weights_bytes,
        found.code_bytes if found else None,
        found.flash_bytes if found else None,
        compiled.macs,
        found.instructions if found else None,
        found.cycles if found else None,
        layers,
        energies(compiled.target, found.cycles if found else None, board.chip if board else ""),
        errors_of(compiled.built) if known else _unmeasured(compiled.target),
        board,
        found.error if found else None,
    )


def _unmeasured(target: str) -> str:
    counting = "".join(
        f"; with --count, {machine.name} counts instructions" for machine in _emulators(target)
    )
    return f"no costs were measured for {target}{counting}"


def counted(compiled: CompiledModel, board: Board | None = None) -> Cost:
    """The same with the instructions and cycles of a run on the machine that emulates the core."""
    machine = emulator_of(compiled.target)
    inputs = [arrays.pattern_inputs(compiled.built.graph)]
    options = Options(profile=True)
    whole, cycles = cycle_models.run_files(compiled.files, machine.name, inputs, reset_before={0})
    by_layer = run_files(compiled.files, machine.name, inputs, reset_before={0}, options=options).layers
    if whole.instructions is None or by_layer is None:
        raise ToolError(f"{machine.name} does not count instructions", "a core that QEMU emulates")
    found = cost_of(compiled, board)
    steps = range(len(found.layers))
    return replace(
        found,
        instructions=whole.instructions[0],
        cycles=cycles.total if isinstance(cycles, Cycles) else None,
        layers=tuple(
            replace(found.layers[step], instructions=max(by_layer.get(step, 0), 0)) for step in steps
        ),
        energies=energies(
            compiled.target,
            cycles.total if isinstance(cycles, Cycles) else None,
            board.chip if board else "",
        ),
        note=f"instructions were counted on {machine.name} for one input"
        + ("; code is estimated, cycles by the tables of the core" if found.code_bytes is not None else ""),
        instructions_error=0.0,
        counted_on=machine.name,
    )


def emulator_of(target: str) -> Machine:
    """The machine that emulates a core, or one that executes practically the same code."""
    found = _emulators(target)
    if not found:
        raise ConfigError(f"no machine emulates {target}", "one of: " + ", ".join(CORES))
    return found[0]


def _emulators(target: str) -> list[Machine]:
    core = SAME_CODE.get(target, target)
    if core == "generic":  # of which each machine would count something else
        return []
    return [machine for machine in MACHINES.values() if machine.board and machine.target.name == core]
