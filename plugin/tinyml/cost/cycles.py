# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of cycles: QEMU executes, a plugin counts blocks, and tables or llvm-mca weigh them.

An estimate holds for memory without wait states. How far it can be trusted is part of it: ``Cycles.how``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tinyml import harness
from tinyml.base.errors import TinymlError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost import cost_tables, mca
from tinyml.cost.cost_tables import Weight
from tinyml.cost.instructions import Instruction, block, disassemble
from tinyml.cost.plugin import Block, Phase, count_blocks
from tinyml.harness import tools
from tinyml.harness.generated import Generated, read_generated
from tinyml.ir import Array

_HARNESS = frozenset(("profile_begin", "clock_read", "port_measure"))
"""Functions that are executed between the marks but are not the model's."""


@dataclass(frozen=True)
class Cycles:
    """Of one run. ``layers`` only if the image was profiled; ``how`` is how reliable they are."""

    total: int
    layers: dict[int, int]
    how: str


@dataclass(frozen=True)
class Unknown:
    """Why there is no estimate."""

    why: str


@dataclass(frozen=True)
class Model:
    """How to weigh the code of a core. ``unaligned`` is what each extra transfer of a load costs."""

    weigh: Callable[[Sequence[Sequence[Instruction]]], list[Weight]]
    how: str
    unaligned: int = 0


def _table(rule: Callable[[Sequence[Instruction]], Weight]) -> Callable[..., list[Weight]]:
    return lambda blocks: [rule(instructions) for instructions in blocks]


ZERO_WAIT = "estimate for memory without wait states"
MODELS = {
    "cortex-m0": Model(
        _table(cost_tables.m0plus), f"{ZERO_WAIT}: Arm's timings of the Cortex-M0+, not calibrated on silicon"
    ),
    "cortex-m3": Model(
        _table(cost_tables.m3), f"{ZERO_WAIT}: Arm's timings of the Cortex-M3, not calibrated on silicon", 1
    ),
    "cortex-m4": Model(
        _table(cost_tables.m4),
        f"{ZERO_WAIT}: Arm's timings of the Cortex-M4; with CMSIS-NN's kernels within 3 % of published "
        "measurements for three convolutional networks, 25 % too low for dense layers read from flash",
        1,
    ),
    "cortex-m7": Model(
        lambda blocks: mca.weigh(blocks, "cortex-m7"),
        f"{ZERO_WAIT}: llvm-mca's model of the Cortex-M7, not calibrated: good for ranking kernels only",
    ),
    "cortex-m55": Model(
        lambda blocks: mca.weigh(blocks, "cortex-m55"),
        f"{ZERO_WAIT}: llvm-mca's model of the Cortex-M55, not calibrated: good for ranking kernels only",
    ),
}
BY_MCA = frozenset(("cortex-m7", "cortex-m55"))


Execute: TypeAlias = Callable[[Sequence[Mapping[str, Array]], Collection[int]], harness.Result]
"""Runs an image on samples; the state is forgotten before those with these numbers."""


def run_files(
    files: Mapping[str, str],
    on: str,
    samples: Sequence[Mapping[str, Array]],
    *,
    reset_before: Collection[int] = (),
    options: harness.Options | None = None,
    inspect: Callable[[Execute], None] | None = None,
) -> tuple[harness.Result, Cycles | Unknown]:
    """``harness.run_files`` with an estimate of the last run's cycles, or why there is none.

    ``inspect`` may run the same image on other samples first.
    """
    machine = harness.find_machine(on)
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        folder = Path(scratch)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        model = read_generated(folder)
        image = harness.build(model, machine, folder, options)
        if inspect:
            inspect(lambda given, resets: harness.execute(image, model, given, reset_before=resets))
        result = harness.execute(image, model, samples, reset_before=reset_before)
        try:
            return result, estimate(image, model, result)
        except TinymlError as error:
            return result, Unknown(error.message)


def estimate(image: harness.Image, model: Generated, result: harness.Result) -> Cycles:
    """The cycles of an image that was just run, so that its samples lie beside it."""
    target, board = image.machine.target.name, image.machine.board
    weighing = MODELS.get(target)
    if weighing is None or board is None:
        raise ToolError(f"there is no model of the pipeline of {target}")
    if target in BY_MCA and not mca.knows(target):
        raise ToolError(
            f"llvm-mca {mca.OLDEST} or later, which has a model of the {target}'s pipeline, was not found"
        )
    symbols = {name: address for address, name in tools.symbols(board.toolchain, image.path)}
    marks = ("profile_begin", "profile_end") if image.profiled else (model.entry, "clock_read")
    begin, end = (symbols[name] & ~1 for name in marks)
    phases = count_blocks(image, begin, end)
    by_mca = target in BY_MCA
    text = mca.disassembly(image.path, target) if by_mca else tools.disassembly(board.toolchain, image.path)
    code = disassemble(text)
    if not image.profiled:
        return Cycles(weigh_phases(phases[-1:], code, weighing)[0], {}, weighing.how)
    calls = result.calls or []
    layers = dict.fromkeys(calls, 0)
    for layer, spent in zip(calls, weigh_phases(phases[-len(calls) :], code, weighing), strict=True):
        layers[layer] += spent
    return Cycles(sum(layers.values()), layers, weighing.how)


def weigh_phases(phases: Sequence[Phase], code: dict[int, Instruction], model: Model) -> list[int]:
    """Cycles of each phase, without what reading the clock takes."""
    counted = [[one for one in phase.blocks if code[one.begin].function not in _HARNESS] for phase in phases]
    places = list(dict.fromkeys((one.begin, one.count) for blocks in counted for one in blocks))
    weights = dict(zip(places, model.weigh([block(code, *place) for place in places]), strict=True))

    def cycles(one: Block) -> float:
        weight = weights[one.begin, one.count]
        return one.executed * weight.cycles + one.taken * weight.taken

    return [
        round(sum(map(cycles, blocks)) + model.unaligned * phase.unaligned)
        for phase, blocks in zip(phases, counted, strict=True)
    ]


def milliseconds(cycles: int, mhz: float) -> float:
    return cycles / (mhz * 1000)
