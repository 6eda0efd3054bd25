# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.cost``: what a model costs on a core, without building or running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tinyml.api.compiled import CompiledModel, compile
from tinyml.api.printed_tables import table
from tinyml.api.sources import ModelLike
from tinyml.cores.boards import Board
from tinyml.cost import cycles as cycle_models
from tinyml.cost.energy import Energy, energies
from tinyml.cost.estimate import errors_of, estimate_for
from tinyml.cost.model import find_model
from tinyml.harness.zephyr.boards import find_board
from tinyml.ir import Shape
from tinyml.settings.optimize import BALANCED


@dataclass(frozen=True)
class LayerCost:
    """One layer; ``instructions`` is None if its kernel was never measured."""

    name: str
    op: str
    kernel: str
    macs: int
    weights_bytes: int
    instructions: int | None


@dataclass(frozen=True)
class Cost:
    """Memory is exact; code, instructions and cycles are estimates. What is not known is None."""

    model: str
    target: str
    arena_bytes: int
    state_bytes: int
    weights_bytes: int
    code_bytes: int | None
    flash_bytes: int | None  # weights, tables and code
    macs: int
    instructions: int | None
    cycles: int | None  # for memory without wait states
    layers: tuple[LayerCost, ...]
    energies: tuple[Energy, ...]  # of one run, on chips with this core whose energy was published
    note: str  # how far the estimates can be off, or why there are none
    board: Board | None = None

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
        return self.arena_bytes + self.state_bytes

    def milliseconds(self, mhz: float) -> float | None:
        """One run at a clock rate."""
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
            ("instructions", self.instructions, "per run, estimated"),
            ("cycles", self.cycles, "per run, estimated, for memory without wait states"),
        )
        return [(title, figure, unit) for title, figure, unit in found if figure is not None]

    def _repr_html_(self) -> str:
        head = (f"{self.model} on {self.target}", "", "")
        energy = [("energy", str(one), one.unit()) for one in self.energies]
        return table([*((title, f"{figure:,}", unit) for title, figure, unit in self.rows()), *energy], head)


def cost(
    model: ModelLike,
    target: str = "cortex-m3",
    *,
    example: Any = None,
    kernels: str = "auto",
    cmsis_nn: bool = False,
    optimize: str = BALANCED.name,
    shapes: Mapping[str, Shape] | None = None,
    board: str = "",
) -> Cost:
    """Estimate what a model costs on a core, in about the time that compiling it takes.

    The figures rest on measurements of all published models (docs/COSTS.md). ``kernels``, ``cmsis_nn``,
    ``optimize`` and ``shapes`` are those of ``tinyml.compile``. A compiled model keeps its own target and
    options. ``board``, by Zephyr's name or PlatformIO's id, gives the target, and ``Cost.fits`` compares with
    its memory.
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
        errors_of(compiled.built) if known else f"no costs were measured for {compiled.target}",
        board,
    )
