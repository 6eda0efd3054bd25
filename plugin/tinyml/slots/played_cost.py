# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a pack without code costs: its line in a benchmark, and its report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bench.measure import ARENA, Row, counting, row_of
from tinyml.cores.targets import Target, find_target
from tinyml.cost.cycles import run_files
from tinyml.datasets.arrays import pattern_inputs
from tinyml.pipeline import Compiled
from tinyml.report.collect import describe, measured
from tinyml.report.facts import Report
from tinyml.report.stages import StageFacts
from tinyml.settings.optimize import GOALS
from tinyml.slots.data_reading import DataModel, ReadCall, read_data
from tinyml.slots.playing import image_for, played_on, summary_of

KERNELS = "played"


def measure_pack(path: Path, machine: str, optimize: str = "-O2") -> Row:
    """Play a pack once on a machine that counts instructions, and add up the costs.

    Its image takes the place of the constants, and the player is among the kernels.
    """
    counting(machine)
    if optimize in GOALS:
        raise ConfigError(
            f"the kernels of a pack were chosen when it was made: --optimize {optimize} cannot change them",
            "--optimize -Os for the C compiler; `tinyml pack --data --optimize GOAL` for the kernels",
        )
    played = played_on(path, machine)
    result, estimate = run_files(
        played.files,
        machine,
        [pattern_inputs(played.graph())],
        reset_before={0},
        options=harness.Options(optimize=optimize),
    )
    summary = {**summary_of(played), "macs": 0}
    return row_of(path, summary, machine, (KERNELS, optimize, ARENA), result, estimate)


def report_of_model(
    path: Path, compiled: Compiled, file: str, stages: list[StageFacts], machine: str | None
) -> Report:
    """The report of the model that a pack was made of; on a machine, of what playing the pack costs."""
    target = find_target(str(compiled.summary["target"]))
    _, content = image_for(path, target)
    report = describe(compiled, file, KERNELS, stages)
    names = {layer.layer: ", ".join(layer.kernels) for layer in _layers(read_data(content), None)}
    layers = [
        replace(layer, kernel=names[layer.step], library="player") if layer.step in names else layer
        for layer in report.layers
    ]
    report = replace(report, layers=layers, estimated=None)  # the estimate is that of compiled code
    if machine is None:
        return report
    return measured(report, compiled, machine, files=played_on(path, machine).files)


@dataclass(frozen=True)
class LayerOfPack:
    """A layer: the kernels that compute it, how often they are called, and what that takes."""

    layer: int
    kernels: tuple[str, ...]
    calls: int
    instructions: int | None


@dataclass(frozen=True)
class PackReport:
    """What a pack says by itself: names and shapes of layers are not in it."""

    model: str
    version: str
    sha256: str
    family: str
    bytes: int
    arena_bytes: int
    state_bytes: int
    work: int
    signed: bool
    layers: tuple[LayerOfPack, ...]
    cost: Row | None

    @property
    def ram_bytes(self) -> int:
        return self.cost.ram_bytes if self.cost else self.arena_bytes + self.state_bytes

    @property
    def flash_bytes(self) -> int:
        return self.cost.flash_bytes if self.cost else self.bytes

    def over_budget(self, ram: int | None, flash: int | None) -> list[str]:
        pairs = (("RAM", self.ram_bytes, ram), ("flash", self.flash_bytes, flash))
        return [f"{name}: {used:,} bytes of {most:,}" for name, used, most in pairs if most and used > most]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def report_of_pack(path: Path, target: Target, machine: str | None) -> PackReport:
    """The report of the image for a core, from the pack alone."""
    family, content = image_for(path, target)
    model = read_data(content)
    costs = row = None
    if machine is not None:
        row = measure_pack(path, machine)
        played = played_on(path, machine)
        costs = played.profile([pattern_inputs(played.graph())]).layers
    return PackReport(
        model.name,
        str(model.version),
        model.sha256,
        family,
        model.bytes,
        model.arena_bytes,
        model.state_bytes,
        model.work,
        model.signed,
        tuple(_layers(model, costs)),
        row,
    )


def _layers(model: DataModel, costs: dict[int, int] | None) -> Sequence[LayerOfPack]:
    calls: dict[int, list[ReadCall]] = {}
    for call in model.run:
        calls.setdefault(call.layer, []).append(call)
    return [
        LayerOfPack(
            layer,
            tuple(dict.fromkeys(call.kernel.name.split()[0] for call in own)),
            sum(call.turns for call in own),
            None if costs is None else costs.get(layer, 0),
        )
        for layer, own in sorted(calls.items())
    ]
