# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Error bars of ``tinyml cost``, from layers that its figures were not fitted to.

``python -m tools.cost_errors [--on qemu-cortex-m4,...] [--new] [--check]``

The layers are random ones (``python -m tools.random_counts`` counts them), and those of published models,
each estimated with figures that were fitted without its model. The bars go into
plugin/tinyml/cost/data/errors, how good the estimates are into docs/COST_ERRORS.md. Requires the published
models in ``TINYML_MODELS``. ``--new`` only adds bars of attention and trees, which no published model has, in
seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from tools import layer_counts, own_loop_counts, random_counts, tree_counts
from tools.cost_examples import examples, single_layers
from tools.environment import ROOT
from tools.fit_costs import narrow
from tools.fit_figures import figures
from tools.fit_loops import parts_of_zeros
from tools.fit_speed import fit_speed

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.whole_files import write_whole
from tinyml.cores.core_data import DATA
from tinyml.cost.error_bars import DOUBTFUL, EDGES, UNKNOWN_SHARE, ErrorBars, size_class
from tinyml.cost.model import Speed, find_model
from tinyml.ops.attention.heads import Heads
from tinyml.ops.classical.trees import TreeWalk
from tinyml.ops.framework.kernel_costs import weighted
from tinyml.ops.framework.work import Work

PAGE = ROOT / "docs" / "COST_ERRORS.md"
RECORD = ROOT / "benchmarks" / "cost_errors.json"
COVERED = 0.95
GOAL = 0.10
FOLDS = 6
ENOUGH = 8
"""Held-out layers that a bar of its own takes: below, the kernel's layers of all sizes share one."""
FEWEST = 3
"""A kernel with fewer held-out layers has no bar."""
LARGE = 200
"""Instructions of a layer of loops from which on it matters in any model."""


@dataclass(frozen=True)
class HeldOut:
    """A layer that the figures were not fitted to."""

    kernel: str
    estimated: float
    counted: float
    random: bool

    @property
    def error(self) -> float:
        """As a part of the estimate, as a bar around it is drawn."""
        return abs(self.counted / max(self.estimated, 1) - 1)

    @property
    def is_close(self) -> bool:
        return abs(self.estimated / self.counted - 1) <= GOAL


def random_layers(machine: str) -> Iterator[HeldOut | str]:
    """Estimates of random layers; the name of the kernel where there is none."""
    target = harness.find_machine(machine).target.name
    costs = find_model(target)
    for one in random_counts.load():
        if one.machine != machine or costs is None:
            continue
        batch = random_counts.made(one.batch, target)
        chosen = batch.selected[one.step]
        if chosen.kernel.name != one.kernel:
            continue  # another kernel computes it since it was counted
        guess = costs.instructions.of_layer(chosen.layer, chosen.kernel, batch.emitted.tallies.get(one.step))
        yield one.kernel if guess is None else HeldOut(one.kernel, guess, one.instructions, True)


def own_loop_layers(machine: str) -> Iterator[HeldOut]:
    """Estimates of the held-out layers that are loops in the model's own C."""
    costs = find_model(harness.find_machine(machine).target.name)
    for one in own_loop_counts.counted(machine, held_out=True) if costs else ():
        assert costs is not None
        guess = costs.instructions.of_loops(one.layer, one.kernel, one.tally)
        yield HeldOut(one.kernel.name, guess, one.spent, True)


def published_layers(machine: str) -> Iterator[HeldOut]:
    """Layers of models, each with figures of the others."""
    known = examples(machine)
    names = sorted({one.counted.model for one in known})
    fold = {name: index % FOLDS for index, name in enumerate(names)}
    alone = single_layers(machine, "instructions")
    core = harness.find_machine(machine).target.name
    costs = find_model(core)
    found = costs.instructions if costs else Speed()
    for part in range(FOLDS):
        inside = [one for one in known if fold[one.counted.model] != part]
        speed = fit_speed([*(layer for one in inside for layer in one.layers("instructions")), *alone])
        # the figures of loops were fitted to no model
        speed = replace(
            speed,
            loops=found.loops,
            loops_up_to=found.loops_up_to,
            shapes=found.shapes,
            shapes_up_to=found.shapes_up_to,
            own_loops=found.own_loops,
            rectified={},
            core=core,
        )
        zeros = parts_of_zeros(speed, inside)
        speed = replace(speed, rectified={name: zeros.get(name, 1.0) for name in found.rectified})
        for one in known:
            if fold[one.counted.model] != part:
                continue
            for layer in one.layers("instructions"):
                guess = speed.of_layer(layer.layer, layer.kernel, layer.tally)
                if guess is not None and layer.spent > 0:
                    name = found.bar_name(layer.kernel, layer.tally)
                    yield HeldOut(name, guess, layer.spent, False)


def attention_layers(machine: str) -> Iterator[HeldOut]:
    """Layers of attention, each estimated with figures of the others."""
    target = harness.find_machine(machine).target
    by_kernel: defaultdict[str, list[tuple[Work, float, float]]] = defaultdict(list)
    for one in single_layers(machine, "instructions"):
        counts = one.kernel.loop_counts(one.layer, target) if isinstance(one.layer.op, Heads) else None
        if counts is not None:
            by_kernel[one.kernel.name].append((counts, one.spent, one.spent))
    for kernel, samples in by_kernel.items():
        for part in range(FOLDS):
            speed = figures([one for number, one in enumerate(samples) if number % FOLDS != part])
            for counts, spent, _ in samples[part::FOLDS]:
                yield HeldOut(kernel, weighted(speed, counts), spent, True)


def tree_layers(machine: str) -> Iterator[HeldOut]:
    """Trained trees, whose rows take other paths than the estimate assumes."""
    costs = find_model(harness.find_machine(machine).target.name)
    found = costs.instructions.loops.get(TreeWalk.name) if costs else None
    for one in tree_counts.load():
        if one.machine == machine and one.is_held_out and found is not None:
            yield HeldOut(TreeWalk.name, weighted(found, one.work), one.instructions, False)


def quantile(errors: Sequence[float]) -> float:
    """What ``COVERED`` of them do not exceed; of few, the largest."""
    ordered = sorted(errors)
    return ordered[min(math.ceil(COVERED * len(ordered)), len(ordered)) - 1]


def bars(layers: Sequence[HeldOut]) -> ErrorBars:
    by_kernel: defaultdict[str, list[HeldOut]] = defaultdict(list)
    for one in layers:
        by_kernel[one.kernel].append(one)
    found = {}
    for kernel, own in sorted(by_kernel.items()):
        if len(own) < FEWEST:
            continue
        whole = quantile([one.error for one in own])
        sizes = []
        for number in range(len(EDGES) + 1):
            some = [one.error for one in own if size_class(one.estimated) == number]
            sizes.append(round(quantile(some) if len(some) >= ENOUGH else whole, 3))
        found[kernel] = sizes
    return ErrorBars(found, {kernel: len(by_kernel[kernel]) for kernel in found})


TEXT = """\
# Error bars of estimates

<!-- Written by `python -m tools.cost_errors`; do not edit. -->

`tinyml cost` and `tinyml.cost()` give every estimate of instructions an error bar. This page shows how wide
the bars are. About 95% of the layers that the figures were **not** fitted to are within their bar. There is
a bar for each kernel and size of layer. In the bar of a model, errors of layers with the same kernel and
about the same size add up; others are taken as independent.

Bars come from two kinds of layers that were left out of the fit. Random layers are those of
`python -m tools.random_counts`: int8, four bits, int16, float, sparse, pools, element-wise and recurrent
layers of all shapes, most of them far smaller than those of models. Layers of published models are estimated
with figures that were fitted without their model, random layers of attention with those of the others.
Figures of trees are fitted to random trees; their bars come from 50 forests and boosted trees that
scikit-learn trained (`python -m tools.tree_counts`), because data decides how many nodes a row passes.

On cores without an FPU, the time of a product or a sum of floats depends on the numbers. Layers that read
what ReLU left have many zeros and take less: a factor says so, and they have a bar of their own (`after
ReLU`). Loops whose time depends on data are estimated by the C that was generated if they are small, and by
figures that were fitted to published models if they are as large as layers of these.

A kernel without such layers has no bar. If such kernels take more than {unknown:.0%} of a model, or if the
bar of the model is above {doubtful:.0%}, `tinyml cost` says that the instructions are unknown;
`tinyml cost --count` counts them on the emulator.

The goal, 10% or better for 95% of random layers, is reached by kernels that say how often each of their loops
runs for a layer, and **not by all loops in the model's own C**. Figures of kernels that say nothing are sums
over the sizes of a layer, and small layers of unusual shapes spend most of their instructions on something
else. Estimates of whole models are far closer ([COSTS.md](COSTS.md)).

The table counts random layers, those of them whose kernel has no figures, and the share of the others whose
estimate is within 10%, 20% and their bar of what was counted; then the same for layers of published models.

| core | random layers | no figures | within 10% | within 20% | within bar | published layers | within 10% |
|---|---:|---:|---:|---:|---:|---:|---:|
"""

KNOWN = """
A layer whose bar is above {doubtful:.0%} is as unknown as one without figures: alone, `tinyml cost` shows no
estimate of it. So many of the random layers are unknown, and so many of the others are within 10%:

| core | unknown | of these without figures | known | within 10% |
|---|---:|---:|---:|---:|
"""

OWN_LOOPS = """
Layers that are loops in the model's own C have random layers of their own
(`python -m tools.own_loop_counts`): about thirty kinds of operators, the usual types, up to four axes, all
patterns of broadcasting, from 8 elements to several thousand. Their estimate reads the C that was generated
(`python -m tools.fit_own_loops`); published models only decided from which size on layers have
figures that were fitted to models. These layers were not fitted:

| core | layers of loops | within 10% | within 20% | from {large:,} instructions on | within 10% |
|---|---:|---:|---:|---:|---:|
"""

KERNELS = """
## {core}

The bar of a layer, by its kernel and by the instructions that are estimated:

| kernel | layers | below 2,000 | to 20,000 | to 200,000 | above |
|---|---:|---:|---:|---:|---:|
"""
WIDEST = 10.0
"""A wider bar says no more than that the estimate is worth nothing."""


def share(some: Sequence[bool]) -> str:
    return f"{sum(some) / len(some):.0%}" if some else ""


def measured(machine: str) -> tuple[ErrorBars, dict[str, object]]:
    """The bars of a core, and its row of the page."""
    random = list(random_layers(machine))
    estimated = [one for one in random if isinstance(one, HeldOut)]
    loops = list(own_loop_layers(machine))
    published = list(published_layers(machine))
    found = bars([*estimated, *loops, *published, *attention_layers(machine), *tree_layers(machine)])
    inside = [
        one.error <= bar
        for one in estimated
        if (bar := found.of_layer(one.kernel, one.estimated)) is not None
    ]
    known = [
        one for one in estimated if (found.of_layer(one.kernel, one.estimated) or 2 * DOUBTFUL) <= DOUBTFUL
    ]
    of_known = (
        f"{len(random) - len(known):,}",
        f"{len(random) - len(estimated):,}",
        f"{len(known):,}",
        share([one.is_close for one in known]),
    )
    row = (
        f"{len(random):,}",
        f"{len(random) - len(estimated):,}",
        share([one.is_close for one in estimated]),
        share([abs(one.estimated / one.counted - 1) <= 2 * GOAL for one in estimated]),
        share(inside),
        f"{len(published):,}",
        share([one.is_close for one in published]),
    )
    large = [one for one in loops if one.counted >= LARGE]
    of_loops = (
        f"{len(loops):,}",
        share([one.is_close for one in loops]),
        share([abs(one.estimated / one.counted - 1) <= 2 * GOAL for one in loops]),
        f"{len(large):,}",
        share([one.is_close for one in large]),
    )
    return found, {"row": list(row), "known": list(of_known), "own loops": list(of_loops)}


def with_unpublished(machine: str, known: ErrorBars) -> ErrorBars:
    """The bars of a core as they are, and those of attention and trees."""
    more = bars([*attention_layers(machine), *tree_layers(machine)])
    kernels, layers = {**known.kernels, **more.kernels}, {**known.layers, **more.layers}
    return ErrorBars(dict(sorted(kernels.items())), dict(sorted(layers.items())))


def page(rows: dict[str, dict[str, object]], found: dict[str, ErrorBars]) -> str:
    lines = [TEXT.format(doubtful=DOUBTFUL, unknown=UNKNOWN_SHARE)]
    lines += _table(rows, "row")
    lines += [KNOWN.format(doubtful=DOUBTFUL), *_table(rows, "known")]
    lines += [OWN_LOOPS.format(large=LARGE), *_table(rows, "own loops")]
    for core, own in found.items():
        lines.append(KERNELS.format(core=core))
        for kernel, sizes in own.kernels.items():
            cells = [f"`{kernel}`", f"{own.layers[kernel]:,}", *map(_bar, sizes)]
            lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


def _table(rows: dict[str, dict[str, object]], name: str) -> Iterator[str]:
    """The cells with this name of the cores that have them."""
    for core, entry in rows.items():
        cells = entry.get(name)
        if isinstance(cells, list):
            yield f"| {' | '.join([core, *cells])} |\n"


def _bar(size: float) -> str:
    return f"{size:.0%}" if size <= WIDEST else f"over {WIDEST:.0%}"


def load() -> tuple[dict[str, dict[str, object]], dict[str, ErrorBars]]:
    rows = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    found = {}
    for core in rows:
        data = json.loads((DATA / "errors" / f"{core}.json").read_text(encoding="utf-8"))
        found[core] = ErrorBars(data["kernels"], data["layers"])
    return rows, found


def current() -> str:
    """The page, from what was measured."""
    return page(*load())


def save(core: str, found: ErrorBars) -> None:
    text = narrow(json.dumps(asdict(found), indent=1)) + "\n"
    write_whole(DATA / "errors" / f"{core}.json", text.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(layer_counts.MACHINES), metavar="MACHINES")
    parser.add_argument("--table", action="store_true", help="only write the page, from what was measured")
    parser.add_argument("--new", action="store_true", help="only add the bars of attention and trees")
    parser.add_argument("--check", action="store_true", help="exit with 1 if the page is not current")
    args = parser.parse_args()
    if args.check:
        return int(PAGE.read_text(encoding="utf-8") != current())
    rows, known = load()
    (DATA / "errors").mkdir(exist_ok=True)
    for machine in () if args.table else args.on.split(","):
        core = harness.find_machine(machine).target.name
        if args.new:
            save(core, with_unpublished(machine, known[core]))
            continue
        found, rows[core] = measured(machine)
        save(core, found)
        print(core, rows[core], flush=True)
    write_whole(RECORD, (json.dumps(dict(sorted(rows.items())), indent=1) + "\n").encode())
    write_whole(PAGE, current().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
