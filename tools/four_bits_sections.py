# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sections of docs/FOUR_BITS.md: how close estimates are, and CMSIS-NN's kernels beside ours."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tinyml.base.whole_files import write_whole
from tinyml.bench.measure import Row
from tinyml.cores.machines import find_machine
from tinyml.cost.estimate import estimate_for
from tinyml.memory.select import Selected
from tinyml.ops.weighted.weighted import Weighted
from tinyml.pipeline import Options, compile_model
from tools.environment import ROOT
from tools.kernel_counts import KernelCount
from tools.kernel_layers import FOUR_BITS

RECORD = ROOT / "benchmarks" / "four_bits_costs.json"

ESTIMATES = """
## Estimates

`tinyml cost` for the models of the table above, against what was counted. Figures fit single layers,
not to these models; but layers with one input channel were added to those after the first layer of KWS had
been estimated at twice its cost, so the models are not unseen.

| core | instructions, worst | code, worst |
|---|---:|---:|
"""

RIVALS = """
## CMSIS-NN's kernels

CMSIS-NN has kernels for weights of four bits (`arm_..._s4`). They are used for the layers in which they are
right: on request (`--kernels cmsis-nn`), and otherwise (`auto`) where they are estimated to take fewer
instructions than ours and save a noticeable part of a run. `arm_convolve_s4` and `arm_convolve_1x1_s4_fast`
round twice at the last two or three positions on Helium where one rounding is asked for;
`arm_depthwise_conv_s4` takes wrong weights at the border if the number of channels is odd;
`arm_fully_connected_s4` has one scale for all outputs only. `ops/conv/cmsis_four_bits.py` and
`ops/dense/cmsis.py` say which layers are left to our kernels.

The table compares them with the best of ours on the layers that every kernel was counted on (`python -m
tools.kernel_counts`): instructions of CMSIS-NN's kernel divided by those of ours.

| core | kernel | layers | least | median | most | fewer instructions in |
|---|---|---:|---:|---:|---:|---|
"""


@dataclass(frozen=True)
class Estimated:
    """A model with weights of four bits on a machine: the errors of its estimates, as parts; its weights."""

    model: str
    machine: str
    instructions: float | None
    code: float
    weights: int  # how many: bytes in int8
    weights_bytes: int  # as they are stored


def estimated(files: Mapping[str, Path], rows: Sequence[Row], kernels: str) -> Iterator[Estimated]:
    """What is estimated for the models that were measured."""
    for row in rows:
        target = find_machine(row.machine).target.name
        options = Options(target=target, kernels=kernels)
        found = estimate_for(compile_model(files[row.model], options))
        if found is None:
            continue
        # the same kernels, each with its layer
        layers = weighted(compile_model(files[row.model], replace(options, bands=False)).selected)
        code = row.flash_bytes - row.constants_bytes
        spent = None if found.instructions is None else round(found.instructions / row.instructions - 1, 4)
        yield Estimated(
            row.model,
            row.machine,
            spent,
            round(found.code_bytes / code - 1, 4),
            sum(count for count, _ in layers),
            sum(-(-count * bits // 8) for count, bits in layers),
        )


def weighted(selected: Sequence[Selected]) -> list[tuple[int, int]]:
    """For each convolution and dense layer, the number of its weights and the bits of each."""
    return [
        (one.layer.input(1).elements, one.kernel.weight_bits)
        for one in selected
        if isinstance(one.layer.op, Weighted)
    ]


def save(found: Iterable[Estimated]) -> None:
    rows = ",\n".join(json.dumps(list(asdict(one).values())) for one in found)
    write_whole(RECORD, f'{{"estimates": [\n{rows}\n]}}\n'.encode())


def load() -> list[Estimated]:
    return [Estimated(*row) for row in json.loads(RECORD.read_text(encoding="utf-8"))["estimates"]]


def estimates_section(found: Sequence[Estimated], names: Mapping[str, str], rows: Sequence[Row]) -> str:
    linked = {(row.model, row.machine): row.flash_bytes - row.constants_bytes for row in rows}
    lines = []
    for machine in dict.fromkeys(one.machine for one in found):
        own = [one for one in found if one.machine == machine]
        known = [one for one in own if one.instructions is not None]
        spent = max(known, key=lambda one: abs(one.instructions or 0), default=None)
        code = max(own, key=lambda one: abs(one.code))
        worst = "none" if spent is None else f"{spent.instructions:+.1%} ({names[spent.model]})"
        core = machine.removeprefix("qemu-")
        of = linked[code.model, machine]
        missed = f"{round(code.code * of):+,} of {of:,} bytes"
        lines.append(f"| {core} | {worst} | {code.code:+.1%} ({names[code.model]}: {missed}) |")
    return ESTIMATES + "\n".join(lines) + "\n"


def rivals_section(counts: Sequence[KernelCount]) -> str:
    spent: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for one in counts:
        if one.layer in FOUR_BITS:
            spent[one.machine, one.layer][one.kernel] = one.instructions
    ratios: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (machine, layer), kernels in spent.items():
        ours = min(count for name, count in kernels.items() if name.startswith("tinyml_"))
        for name, count in kernels.items():
            if name.startswith("arm_"):
                ratios[machine, name][layer] = count / ours
    lines = []
    for (machine, name), found in sorted(ratios.items()):
        values = sorted(found.values())
        better = [layer.removeprefix("four_bits_") for layer, ratio in sorted(found.items()) if ratio < 1]
        cells = [f"{value:.2f}" for value in (values[0], values[len(values) // 2], values[-1])]
        layers = ", ".join(f"`{layer}`" for layer in better) or "none"
        core = machine.removeprefix("qemu-")
        lines.append(f"| {core} | `{name}` | {len(values)} | {' | '.join(cells)} | {layers} |")
    return RIVALS + "\n".join(lines) + "\n"
