# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The content of a report, in plain types: what ``--json`` writes is these classes, field by field.

Fields are added, never renamed or dropped, while ``SCHEMA`` stays the same.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.cost.cycles import milliseconds
from tinyml.cost.energy import Energy, energies

SCHEMA = 1


@dataclass(frozen=True)
class TensorFacts:
    """A tensor in the arena: its bytes are there from step ``first`` to step ``last``."""

    name: str
    shape: list[int]
    dtype: str
    bytes: int
    offset: int
    first: int
    last: int


@dataclass(frozen=True)
class OperandFacts:
    """A tensor that a layer reads or writes, with its quantisation.

    ``scales`` and ``zero_points`` have one element, or the smallest and the largest of ``channels``.
    """

    role: str  # input, constant or output
    name: str
    shape: list[int]
    dtype: str
    bytes: int
    scales: list[float] = field(default_factory=list)
    zero_points: list[int] = field(default_factory=list)
    channels: int | None = None


@dataclass(frozen=True)
class LayerFacts:
    step: int
    name: str
    op: str
    kernel: str
    library: str
    free: bool  # no work: buffer sharing already puts the output in place
    macs: int
    weights_bytes: int
    scratch_bytes: int
    scratch_offset: int | None
    live_bytes: int  # of the arena, while it runs
    inputs: list[str]
    outputs: list[str]
    shape: list[int]  # of its first output
    instructions: int | None = None
    cycles: int | None = None  # on hardware, instead of instructions
    cycles_estimated: int | None = None
    label: str = ""  # what it computes: one ``op`` can be a family of operators
    operands: list[OperandFacts] = field(default_factory=list)
    snr_db: float | None = None  # of its output against the float model, if that is known
    code: str = ""  # its function in the generated C; empty if it does no work
    attributes: dict[str, str] = field(default_factory=dict)  # of its operator: strides, padding, axes


@dataclass(frozen=True)
class StageFacts:
    """The graph after a pass."""

    name: str
    layers: int
    macs: int
    constants_bytes: int


@dataclass(frozen=True)
class Measured:
    """On a machine: instructions of one run, and the parts of the image."""

    machine: str
    instructions: int
    stack_bytes: int
    constants_bytes: int
    kernels_bytes: int
    glue_bytes: int
    library_bytes: int
    other_ram_bytes: int
    cycles_estimated: int | None = None
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

    instructions: int | None
    cycles: int | None
    constants_bytes: int
    code_bytes: int
    note: str
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

    file: str
    constants_bytes: int
    code_bytes: int
    kernels_bytes: int
    glue_bytes: int  # of the module: claims, registry, shell
    ram_bytes: int  # arena and variables of models, kernels and module
    image_flash_bytes: int
    image_ram_bytes: int

    @property
    def flash_bytes(self) -> int:
        return self.constants_bytes + self.code_bytes + self.kernels_bytes + self.glue_bytes


@dataclass(frozen=True)
class Profile:
    """One run in a Zephyr image; ``unit``: instructions or cycles, ``how``: the way they were counted."""

    where: str
    unit: str
    total: int
    how: str


@dataclass(frozen=True)
class Report:
    schema: int
    model: str
    file: str
    sha256: str
    version: str
    target: str
    kernels: str
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    macs: int
    weights_bytes: int
    arena_bytes: int
    arena_lower_bound_bytes: int
    state_bytes: int
    peak_step: int
    layers: list[LayerFacts]
    tensors: list[TensorFacts]
    stages: list[StageFacts]
    measured: Measured | None = None
    ram_budget_bytes: int | None = None
    flash_budget_bytes: int | None = None
    profile: Profile | None = None
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
