# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The content of a report, in plain types: what ``--json`` writes is these classes, field by field.

Fields are added, never renamed or dropped, while ``SCHEMA`` stays the same.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, field, fields
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost.cycles import milliseconds
from tinyml.cost.energy import Energy, energies
from tinyml.report.stages import StageFacts

SCHEMA = 1


@dataclass(frozen=True)
class TensorFacts:
    """A tensor in the arena: its bytes are there from step ``first`` to step ``last``."""

    name: str  # in the model
    shape: list[int]
    dtype: str  # of its elements
    bytes: int
    offset: int  # in the arena, in bytes
    first: int  # the step that writes it
    last: int  # the last step that reads it


@dataclass(frozen=True)
class OperandFacts:
    """A tensor that a layer reads or writes, with its quantisation.

    ``scales`` and ``zero_points`` have one element, or the smallest and the largest of ``channels``.
    """

    role: str  # input, constant or output
    name: str  # in the model
    shape: list[int]
    dtype: str  # of its elements
    bytes: int
    scales: list[float] = field(default_factory=list)  # none: not quantised
    zero_points: list[int] = field(default_factory=list)
    channels: int | None = None  # how many have a scale of their own


@dataclass(frozen=True)
class LayerFacts:
    """One layer of the compiled model."""

    step: int  # its place in the order of execution, from 0
    name: str  # of the node in the model
    op: str  # the operator, as the compiler calls it
    kernel: str  # what computes it
    library: str  # portable, cmsis-nn, or generated: loops in the model's own C
    free: bool  # no work: buffer sharing already puts the output in place
    macs: int  # multiply-accumulates of one run
    weights_bytes: int  # its constants, in flash
    scratch_bytes: int  # working memory, in the arena
    scratch_offset: int | None  # of it in the arena
    live_bytes: int  # of the arena, while it runs
    inputs: list[str]  # tensors that it reads
    outputs: list[str]  # tensors that it writes
    shape: list[int]  # of its first output
    instructions: int | None = None  # counted, if it was measured
    cycles: int | None = None  # on hardware, instead of instructions
    cycles_estimated: int | None = None  # for memory without wait states
    label: str = ""  # what it computes: one ``op`` can be a family of operators
    operands: list[OperandFacts] = field(default_factory=list)  # what it reads and writes
    snr_db: float | None = None  # of its output against the float model, if that is known
    code: str = ""  # its function in the generated C; empty if it does no work
    attributes: dict[str, str] = field(default_factory=dict)  # of its operator: strides, padding, axes


@dataclass(frozen=True)
class Measured:
    """On a machine: instructions of one run, and the parts of the image."""

    machine: str  # such as qemu-cortex-m4
    instructions: int  # of one run
    stack_bytes: int  # that this run used
    constants_bytes: int  # weights and tables, in flash
    kernels_bytes: int  # code of the kernels
    glue_bytes: int  # code of the model's own C
    library_bytes: int  # code of the C library
    other_ram_bytes: int  # variables beside arena and state
    cycles_estimated: int | None = None  # for memory without wait states
    cycles_note: str = ""  # how they were estimated, or why they were not
    stack_bound_bytes: int | None = None  # of any run; stack_bytes is what this one used
    most_instructions: int | None = None  # of any run, as `tinyml bound` finds them
    bound_note: str = ""  # why there is no such bound

    @property
    def flash_bytes(self) -> int:
        return self.constants_bytes + self.kernels_bytes + self.glue_bytes + self.library_bytes


@dataclass(frozen=True)
class Estimated:
    """Without building or running: see ``tinyml.cost``. ``note``: how far the figures can be off."""

    instructions: int | None  # of one run; None: not known
    cycles: int | None  # for memory without wait states
    constants_bytes: int  # weights and tables
    code_bytes: int  # what the linker will keep
    note: str  # how far the figures can be off
    instructions_error: float | None = None  # as a part of them, from held-out layers; None: not known

    @property
    def bar(self) -> str:
        """How far the instructions may be off, to be printed behind them."""
        return "± ?" if self.instructions_error is None else f"± {self.instructions_error:.0%}"

    @property
    def flash_bytes(self) -> int:
        return self.constants_bytes + self.code_bytes


@dataclass(frozen=True)
class Image:
    """What a model takes in the linked image of a build, by the ELF file and the linker's map.

    Kernels are those of all models in the image. ``code_bytes`` is the model's own.
    """

    file: str  # the ELF file
    constants_bytes: int  # weights and tables
    code_bytes: int  # the model's own
    kernels_bytes: int  # of all models in the image
    glue_bytes: int  # of the module: claims, registry, shell
    ram_bytes: int  # arena and variables of models, kernels and module
    image_flash_bytes: int  # of the whole image
    image_ram_bytes: int  # of the whole image

    @property
    def flash_bytes(self) -> int:
        return self.constants_bytes + self.code_bytes + self.kernels_bytes + self.glue_bytes


@dataclass(frozen=True)
class Profile:
    """One run in a Zephyr image; ``unit``: instructions or cycles, ``how``: the way they were counted."""

    where: str  # the board
    unit: str  # instructions or cycles
    total: int  # of one run
    how: str  # the way they were counted


@dataclass(frozen=True)
class Report:
    """What is known about a compiled model."""

    schema: int  # the version of this format
    model: str  # its prefix in C
    file: str  # the model file
    sha256: str  # of the file, and of its external data
    version: str  # of this package
    target: str  # the core
    kernels: str  # the setting: auto, cmsis-nn or portable
    inputs: list[dict[str, Any]]  # name, shape, dtype and bytes of each
    outputs: list[dict[str, Any]]  # name, shape, dtype and bytes of each
    macs: int  # multiply-accumulates of one run
    weights_bytes: int  # all constants
    arena_bytes: int  # working memory of a run
    arena_lower_bound_bytes: int  # no plan needs less
    state_bytes: int  # RAM that is kept between runs
    peak_step: int  # the layer at which most bytes are in use
    layers: list[LayerFacts]  # in the order of execution
    tensors: list[TensorFacts]  # in the arena
    stages: list[StageFacts]  # the graph after each pass that changed it
    measured: Measured | None = None  # with --on
    ram_budget_bytes: int | None = None  # --ram, the board's, or that of tinyml.yaml
    flash_budget_bytes: int | None = None  # --flash, the board's, or that of tinyml.yaml
    profile: Profile | None = None  # with -b, in a Zephyr image
    mhz: float | None = None  # the core's clock, if it was given
    notes: list[str] = field(default_factory=list)  # what to know about how the model was read
    accuracy: list[str] = field(default_factory=list)  # what quantising and evaluating found, one line each
    estimated: Estimated | None = None  # if nothing was measured and the core's costs are known
    board: str = ""  # the board and its facts, in words, if one was given
    chip: str = ""  # of that board
    image: Image | None = None  # the build that was read with -d

    @property
    def milliseconds(self) -> float | None:
        """One run at that clock, by the estimate."""
        facts = self.measured
        cycles = facts.cycles_estimated if facts else self.estimated.cycles if self.estimated else None
        return None if cycles is None or self.mhz is None else milliseconds(cycles, self.mhz)

    @property
    def energies(self) -> tuple[Energy, ...]:
        """Of one run, by the estimate of cycles: on the board's chip, or on all chips with this core."""
        facts = self.measured
        cycles = facts.cycles_estimated if facts else self.estimated.cycles if self.estimated else None
        return energies(self.target, cycles, self.chip)

    @property
    def cost_unit(self) -> str | None:
        """The count for each layer, if there is one."""
        return self.profile.unit if self.profile else "instructions" if self.measured else None

    @property
    def ram_bytes(self) -> int:
        if self.image:
            return self.image.ram_bytes
        return self.arena_bytes + self.state_bytes + (self.measured.other_ram_bytes if self.measured else 0)

    @property
    def flash_bytes(self) -> int:
        """Linked, measured or estimated flash, or the weights if neither is known."""
        known = self.image or self.measured or self.estimated
        return known.flash_bytes if known else self.weights_bytes

    @property
    def over_budget(self) -> list[str]:
        """Messages about exceeded budgets."""
        pairs = (
            ("RAM", self.ram_bytes, self.ram_budget_bytes),
            ("flash", self.flash_bytes, self.flash_budget_bytes),
        )
        return [
            f"{name}: {used:,} bytes of {budget:,}"
            for name, used, budget in pairs
            if budget and used > budget
        ]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def load(path: Path) -> Report:
    """A report that was written with ``--json``."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ConfigError(f"{path} has schema {data['schema']}; this version reads {SCHEMA}")
        data["layers"] = [_layer(item) for item in data["layers"]]
        data["tensors"] = [_read(TensorFacts, item) for item in data["tensors"]]
        data["stages"] = [_read(StageFacts, item) for item in data["stages"]]
        data["measured"] = _read(Measured, data["measured"]) if data["measured"] else None
        estimated = data.get("estimated")
        data["estimated"] = _read(Estimated, estimated) if estimated else None
        data["image"] = _read(Image, data["image"]) if data.get("image") else None
        data["profile"] = _read(Profile, data["profile"]) if data.get("profile") else None
        report: Report = _read(Report, data)
        for facts in (report, report.measured, report.estimated, report.image):
            _check_numbers(facts)
        return report
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{path} is not a report", "tinyml report MODEL --json FILE") from None


def _check_numbers(facts: Any) -> None:
    """What is compared must be numbers, whatever the file has in their places."""
    for f in fields(facts) if facts is not None else ():
        value = getattr(facts, f.name)
        whole = f.type in ("int", "int | None")
        if whole and not (value is None or isinstance(value, int | float)):
            raise TypeError(f.name)


def _layer(data: Any) -> Any:
    operands = [_read(OperandFacts, item) for item in data.get("operands", ())]
    return _read(LayerFacts, {**data, "operands": operands})


def _read(kind: Any, data: Any) -> Any:
    """An object from its fields. Ignores fields that a newer version added; fields that an older version
    did not have get their default."""
    required = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
    return kind(**{f.name: data[f.name] for f in fields(kind) if f.name in data or f.name in required})
