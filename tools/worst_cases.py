# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write docs/WORST_CASES.md: bounds of published models beside the worst runs that a search finds.

``python -m tools.worst_cases [--check | --measure [--ways] [--on qemu-cortex-m4] [--rounds 4]]``

``--measure`` bounds the models in the folder ``TINYML_MODELS``, and looks for inputs with many instructions
in QEMU: zeros, extremes, saturating patterns, random values, and changes of the worst so far. The results are
kept in benchmarks/worst_cases.json. A run above a bound, or deeper than its stack, ends the command.
``--measure --ways`` does so for trees, sorting and boxes (tools/worst_ways.py), without published models.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.harness.generated import Generated
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model
from tools import worst_ways

MODELS = {
    "mlperf_ad_int8": "AD, dense",
    "mlperf_kws_int8": "KWS, DS-CNN",
    "mlperf_resnet_int8": "IC, ResNet-8",
    "mlperf_vww_int8": "VWW, MobileNet",
}
MACHINES = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m7", "qemu-cortex-m55")
RECORD = ROOT / "benchmarks" / "worst_cases.json"
PAGE = ROOT / "docs" / "WORST_CASES.md"
PER_ROUND = 8
SAMPLE = dict[str, Array]

TEXT = """\
# Worst cases

<!-- Written by `python -m tools.worst_cases`; do not edit. -->

This page compares the [bounds](bounds.md) of models with the worst runs that a search found. The first table
has the MLPerf Tiny models, linked for emulated cores and run in QEMU with these inputs: zeros, extremes,
saturating patterns, random inputs, and changes of the worst input so far. No
run exceeds its bound. "Exact" layers are those whose instructions do not depend on data, which the walk
proves for each of them.

| model | core | instructions at most | worst run | above it | exact | cycles at most | stack at most | used |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


@dataclass(frozen=True)
class Row:
    model: str
    machine: str
    bound: int
    worst: int
    layers: int
    exact: int
    cycles: int | None
    stack_bound: int
    stack_used: int


def first_inputs(model: Generated, random: np.random.Generator) -> list[SAMPLE]:
    """Inputs that saturate layers, or none of them."""
    found: list[SAMPLE] = []
    for kind in ("zeros", "least", "most", "stripes", *("random",) * 4):
        sample: SAMPLE = {}
        for port in model.inputs:
            if port.dtype.kind == "f":
                least, most = -100.0, 100.0
            else:
                least, most = float(np.iinfo(port.dtype).min), float(np.iinfo(port.dtype).max)
            count = int(np.prod(port.shape))
            values = {
                "zeros": np.zeros(count),
                "least": np.full(count, least),
                "most": np.full(count, most),
                "stripes": np.where(np.arange(count) % 2 == 0, least, most),
                "random": np.round(random.uniform(least, most, count)),
            }[kind]
            sample[port.name] = values.astype(port.dtype).reshape(port.shape)
        found.append(sample)
    return found


def changed(sample: SAMPLE, random: np.random.Generator) -> SAMPLE:
    """Some of the values replaced by others that occur in it, or shuffled."""
    result: SAMPLE = {}
    for name, array in sample.items():
        flat = array.reshape(-1).copy()
        part = random.random(flat.size) < random.choice([0.001, 0.02, 0.3])
        flat[part] = random.permutation(random.choice(flat, int(part.sum()))) if part.any() else flat[part]
        if flat.dtype.kind in "iu" and random.random() < 0.5:
            info = np.iinfo(flat.dtype)
            flat[part] = random.integers(info.min, info.max + 1, int(part.sum())).astype(flat.dtype)
        result[name] = flat.reshape(array.shape)
    return result


def row(path: Path, machine: harness.Machine, rounds: int) -> Row:
    """Bound a model and search for its worst run."""
    random = np.random.default_rng(38)
    compiled = compile_model(path, Options("model", machine.target.name))
    with worst_ways.linked(compiled, machine) as (model, bound, image):
        samples = first_inputs(model, random)
        worst, best, stack = 0, samples[0], 0
        for _ in range(rounds):
            result = harness.execute(image, model, samples, reset_before=range(len(samples)))
            assert result.instructions is not None
            assert result.stack_bytes is not None
            stack = max(stack, result.stack_bytes)
            for sample, count in zip(samples, result.instructions, strict=True):
                if count > worst:
                    worst, best = count, sample
            samples = [changed(best, random) for _ in range(PER_ROUND)]
    if worst > bound.instructions or stack > bound.stack_bytes:
        raise SystemExit(f"{path.stem} on {machine.name}: a run exceeds the bound: {worst}, {stack}; {bound}")
    used = [layer for layer in bound.layers if layer.most]
    exact = sum(not layer.varies for layer in used)
    return Row(
        path.stem,
        machine.name,
        bound.instructions,
        worst,
        len(used),
        exact,
        bound.cycles,
        bound.stack_bytes,
        stack,
    )


def core_of(machine: str) -> str:
    return machine.removeprefix("qemu-cortex-").upper().replace("M0", "M0+")


def page(rows: Sequence[Row], ways: Sequence[worst_ways.Way]) -> str:
    lines = []
    for one in rows:
        above = f"{100 * (one.bound / one.worst - 1):.2f} %"
        cells = (
            *(MODELS[one.model], core_of(one.machine), f"{one.bound:,}", f"{one.worst:,}", above),
            f"{one.exact} of {one.layers}",
            "" if one.cycles is None else f"{one.cycles:,}",
            *(f"{one.stack_bound:,}", f"{one.stack_used:,}"),
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    return TEXT + "".join(lines) + worst_ways.section(ways, MACHINES, core_of)


def load() -> list[Row]:
    return [Row(**entry) for entry in json.loads(RECORD.read_text(encoding="utf-8"))]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if the page is not current")
    parser.add_argument("--measure", action="store_true", help="bound and run the models again")
    parser.add_argument(
        "--ways", action="store_true", help="measure what takes its way by data, nothing else"
    )
    parser.add_argument("--on", action="append", choices=MACHINES, help="only these machines (repeatable)")
    parser.add_argument("--rounds", type=int, default=4, help="of the search (default: %(default)s)")
    args = parser.parse_args()
    machines = args.on or MACHINES
    if args.measure and args.ways:
        worst_ways.measure(machines, args.rounds, changed)
    elif args.measure:
        kept = {(one.model, one.machine): one for one in load()} if RECORD.is_file() else {}
        folder = Path(os.environ["TINYML_MODELS"])
        for name in MODELS:
            for machine in machines:
                found = row(folder / f"{name}.tflite", harness.find_machine(machine), args.rounds)
                kept[name, machine] = found
                print(found, flush=True)
        order = [kept[name, machine] for name in MODELS for machine in MACHINES if (name, machine) in kept]
        text = json.dumps([asdict(one) for one in order], indent=1) + "\n"
        RECORD.write_text(text, encoding="utf-8")
    text = page(load(), worst_ways.load())
    if args.check:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
