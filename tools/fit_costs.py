# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit the costs by which ``tinyml.cost`` estimates, and write docs/COSTS.md with the error of each estimate.

``python -m tools.fit_costs [--on qemu-cortex-m4,...] [--keep-code | --keep-functions | --table]``

Instructions and cycles are fitted to benchmarks/layer_counts.json (``python -m tools.layer_counts`` counts
them again). Code is linked function by function. The costs of a core go into plugin/tinyml/cost/data.
``--keep-code`` fits only instructions and cycles; ``--keep-functions`` also the code of models, with the
sizes of library functions as they are; ``--table`` only writes the page, from the costs as they are.
Requires the Arm tools, CMSIS-NN, and the published models in the folder ``TINYML_MODELS``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import nnls

from tools import layer_counts
from tools.environment import ROOT
from tools.layer_counts import Counted

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.bench import record
from tinyml.code_sizes import DATA
from tinyml.cost import cycles
from tinyml.cost.estimate import UNSURE, estimate, inner_names, own_amounts
from tinyml.cost.estimate import functions as functions_of
from tinyml.cost.loops import Reading, read_layers
from tinyml.cost.model import (
    Code,
    CostModel,
    Figures,
    Speed,
    executed,
    factor_keys,
    find_model,
    library_parts,
    variant,
    weighted,
    written,
)
from tinyml.cost.work import Work, work
from tinyml.errors import TinymlError
from tinyml.ir import Layer
from tinyml.kernel import Kernel, Library
from tinyml.machines import Machine
from tinyml.pipeline import Compiled, banded_layers
from tools import code_tables
from tools.code_tables import OwnCode

EVENNESS = 0.6
"""How much a layer counts by its relative error: 1 entirely, 0 by its share of the model's cost."""

ROUNDS = 3  # of sharing out what layers in bands cost among the kernels in them
EMPHASES = 4  # rounds with more weight on what is estimated worst
DIGITS = 5


@dataclass(frozen=True)
class Known:
    """A layer whose cost was counted. ``whole``: what its model costs."""

    model: str
    layer: Layer
    kernel: Kernel[Any]
    reading: Reading | None
    spent: float
    whole: float


def figures(samples: Sequence[tuple[Work, float, float]]) -> Figures:
    """Non-negative figures for (work, cost, cost of the model)."""
    names = sorted({name for amounts, _, _ in samples for name, amount in amounts.items() if amount})
    if not names:
        return {}
    spent = np.maximum(np.array([cost for _, cost, _ in samples], float), 1)
    whole = np.maximum(np.array([total for _, _, total in samples], float), 1)
    weights = 1 / (spent**EVENNESS * whole ** (1 - EVENNESS))
    amounts = np.array([[amounts.get(name, 0.0) for name in names] for amounts, _, _ in samples])
    scaled = amounts * weights[:, np.newaxis]
    largest = np.maximum(scaled.max(axis=0), 1e-30)
    found, _ = nnls(scaled / largest, spent * weights, maxiter=50 * len(names))
    return {
        name: float(f"{figure:.{DIGITS}g}")
        for name, figure in zip(names, found / largest, strict=True)
        if figure > 0
    }


def fit_speed(layers: Sequence[Known]) -> Speed:
    """Loops first; then kernels, to whose layers the parts of layers in bands are added round by round."""
    loops = [one for one in layers if _own(one)]
    operations = figures([(executed(o.layer, _read(o)), o.spent, o.whole) for o in loops])
    speed = Speed({}, operations, factors(loops, lambda o: executed(o.layer, _read(o)), operations))
    direct = [
        (variant(one.kernel, work(one.layer)), work(one.layer), one.spent, one.whole)
        for one in layers
        if one.kernel.library is not Library.GENERATED
    ]
    shared: list[tuple[str, Work, float, float]] = []
    for _ in range(ROUNDS):
        samples: defaultdict[str, list[tuple[Work, float, float]]] = defaultdict(list)
        for key, amounts, spent, whole in (*direct, *shared):
            samples[key].append((amounts, spent, whole))
        speed = replace(speed, kernels={key: figures(found) for key, found in sorted(samples.items())})
        shared = list(_shared_out(speed, layers))
    return speed


def fit_evenly(known: Sequence[Example], cost: str) -> Speed:
    """``fit_speed`` again, with more weight on the models that it estimates worst; the best of all."""
    layers = [one.layers(cost) for one in known]
    weight: defaultdict[str, float] = defaultdict(lambda: 1.0)
    best, least = Speed(), float("inf")
    for _ in range(1 + EMPHASES):
        speed = fit_speed([_emphasised(layer, weight[layer.model]) for own in layers for layer in own])
        errors = {own[0].model: abs(_sum(speed, own) / own[0].whole - 1) for own in layers if own}
        worst = max(errors.values(), default=0.0)
        if worst < least:
            best, least = speed, worst
        for model, error in errors.items():
            weight[model] *= 1 + error / max(worst, 1e-9)
    return best


def _emphasised(layer: Known, weight: float) -> Known:
    """``figures`` divides by a power of ``whole``."""
    return replace(layer, whole=layer.whole / weight ** (1 / (1 - EVENNESS)))


def _sum(speed: Speed, layers: Sequence[Known]) -> float:
    return sum(speed.of_layer(one.layer, one.kernel, one.reading) or 0.0 for one in layers)


def _shared_out(speed: Speed, layers: Sequence[Known]) -> Iterator[tuple[str, Work, float, float]]:
    """What the kernels inside layers in bands cost, by their present estimates."""
    for one in layers:
        if (inside := library_parts(one.layer)) is not None:
            parts = [(variant(kernel, work(part)), work(part)) for part, kernel in inside]
            left = max(one.spent - speed.of_loops(one.layer, one.kernel, one.reading), 1)
            guesses = [
                weighted(speed.kernels[key], amounts) if key in speed.kernels else amounts["macs"]
                for key, amounts in parts
            ]
            for (key, amounts), guess in zip(parts, guesses, strict=True):
                yield key, amounts, left * guess / max(sum(guesses), 1), one.whole


def factors(layers: Sequence[Known], amounts: Any, operations: Figures) -> dict[str, float]:
    """By how much all layers of a kernel together differ from the sum over their operations."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in layers:
        guess = weighted(operations, amounts(one))
        for key in factor_keys(one.layer, one.kernel, _read(one)):
            sums[key][0] += one.spent
            sums[key][1] += guess
    return {
        key: float(f"{real / guess:.{DIGITS}g}") for key, (real, guess) in sorted(sums.items()) if guess > 0
    }


def _own(one: Known) -> bool:
    """Whether a layer is only loops in the model's own source."""
    return one.kernel.library is Library.GENERATED and banded_layers(one.layer) is None


def _read(one: Known) -> Reading:
    return one.reading or Reading()


@dataclass(frozen=True)
class Example:
    """A model that was counted, compiled again."""

    counted: Counted
    model: Compiled

    @property
    def is_current(self) -> bool:
        """Whether it still has the layers and kernels that were counted."""
        names = layer_counts.kernel_names(self.model)
        return all(one.step < len(names) and one.kernel == names[one.step] for one in self.counted.layers)

    def layers(self, cost: str) -> list[Known]:
        readings = read_layers(self.model.files[f"{self.model.name}.c"])
        chosen = self.model.selected
        whole = self.counted.instructions if cost == "instructions" else self.counted.cycles
        return [
            Known(
                self.counted.model,
                chosen[one.step].layer,
                chosen[one.step].kernel,
                readings.get(one.step),
                float(getattr(one, cost)),
                float(whole or 0),
            )
            for one in self.counted.layers
        ]


@cache
def examples(machine: str) -> list[Example]:
    """All models that were counted on a machine and are here; without runs that outlasted its timer."""
    files = {path.stem: path for path in layer_counts.published()}
    target = harness.find_machine(machine).target.name
    found = [
        Example(one, layer_counts.compiled(files[one.model], target, one.cmsis_nn))
        for one in layer_counts.load()
        if one.machine == machine and one.model in files and not one.wrapped
    ]
    return [one for one in found if one.is_current]


def fit_code(machine: str, known: Sequence[Example], old: Code | None = None) -> Code:
    """Link every function (unless ``old`` has their sizes), and fit the size of the models' own code."""
    place = harness.find_machine(machine)
    own = [code_tables.own_code(one.model, place) for one in known]
    linked = old or _linked(place, own, known)
    layers = [layer for one, code in zip(known, own, strict=True) for layer in _sized(one, code)]
    operations = figures([(written(o.layer, _read(o)), o.spent, o.whole) for o in layers])
    found = factors(layers, lambda o: written(o.layer, _read(o)), operations)
    code = replace(linked, operations=operations, factors=found)
    amounts = [own_amounts(code, one.model) for one in known]
    apart = [code.linked(functions_of(one.model, code), "inline ") for one in known]
    whole = figures(
        [
            (each, max(one.counted.glue_bytes - inline, 1), one.counted.code_bytes)
            for each, one, inline in zip(amounts, known, apart, strict=True)
        ]
    )
    extra = [
        found.constants_bytes - one.model.summary["weights_bytes"]
        for found, one in zip(own, known, strict=True)
    ]
    constants = figures([(a, max(e, 1), max(e, 1)) for a, e in zip(amounts, extra, strict=True)])
    return replace(code, whole=whole, constants=constants)


def _linked(place: Machine, own: Sequence[OwnCode], known: Sequence[Example]) -> Code:
    """Every function of the libraries, each linked alone."""
    asked = {name for code in own for names in code.refers.values() for name in names}
    inlines = {name: found for code in own for name, found in code.inlines.items()}
    asked |= {name for _, names in inlines.values() for name in names}
    linked = code_tables.library_functions(place, asked)
    sizes: dict[str, int] = {}
    functions: dict[str, set[str]] = {}
    for name, pieces in linked.items():
        functions[name] = {piece for piece, _ in pieces}
        sizes |= dict(pieces)
    for name, (size, _) in inlines.items():
        sizes[f"inline {name}"] = size
    for name in inlines:
        functions[name] = _closure(name, inlines, functions)
    numbers = {piece: number for number, piece in enumerate(sorted(sizes))}
    return Code(
        tuple((piece, sizes[piece]) for piece in sorted(sizes)),
        {name: tuple(sorted(numbers[p] for p in pieces)) for name, pieces in sorted(functions.items())},
        _helpers(known, own),
    )


def _closure(
    name: str, inlines: Mapping[str, tuple[int, frozenset[str]]], linked: Mapping[str, set[str]]
) -> set[str]:
    """The pieces of a header's function that was not inlined, and of all that it calls."""
    found: set[str] = set()
    seen: set[str] = set()
    rest = [name]
    while rest:
        one = rest.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in inlines:
            found.add(f"inline {one}")
            rest += inlines[one][1]
        else:
            found |= linked.get(one, set())
    return found


def _sized(one: Example, code: OwnCode) -> Iterator[Known]:
    """The layers of a model with the bytes of their functions; of equal functions only the first."""
    readings = read_layers(one.model.files[f"{one.model.name}.c"])
    seen: set[str] = set()
    for step, size in sorted(code.layers.items()):
        chosen = one.model.selected[step]
        if readings[step].body in seen or size == 0:
            continue
        seen.add(readings[step].body)
        whole = float(one.counted.glue_bytes)
        yield Known(one.counted.model, chosen.layer, chosen.kernel, readings.get(step), float(size), whole)


def _helpers(known: Sequence[Example], own: Sequence[OwnCode]) -> dict[str, tuple[str, ...]]:
    """What the compiler calls for each kind of layer without a call in the C: soft floats, copies."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one, code in zip(known, own, strict=True):
        readings = read_layers(one.model.files[f"{one.model.name}.c"])
        for step, names in code.refers.items():
            chosen = one.model.selected[step]
            if banded_layers(chosen.layer) is not None:
                continue
            called = {name.removesuffix("()") for name in readings[step].written} | UNSURE
            ours = (one.model.name, "tinyml_", "arm_", ".")
            for key in inner_names(chosen.layer, chosen.kernel):
                found[key] |= {name for name in names - called if not name.startswith(ours)}
    return {key: tuple(sorted(names)) for key, names in sorted(found.items()) if names}


def fit(machine: str, keep_code: bool = False, keep_functions: bool = False) -> CostModel:
    """All costs of the core of a machine, with their errors; what is kept is that of the last fit."""
    known = examples(machine)
    target = harness.find_machine(machine).target.name
    old = find_model(target) if keep_code or keep_functions else None
    timed = [one for one in known if one.counted.cycles is not None]
    weighing = cycles.MODELS.get(target)
    model = CostModel(
        target,
        record.compiler_name([machine]),
        fit_evenly(known, "instructions"),
        fit_evenly(timed, "cycles") if timed else None,
        weighing.how if weighing else "",
        old.code if old and keep_code else fit_code(machine, known, old.code if old else None),
    )
    errors = [error_of(model, one) for one in known]
    return replace(
        model,
        instructions=replace(model.instructions, error=_worst(e.instructions for e in errors)),
        cycles=replace(model.cycles, error=_worst(e.cycles for e in errors)) if model.cycles else None,
        code=replace(model.code, error=_worst(e.code for e in errors)),
    )


def _worst(errors: Iterable[float | None]) -> float:
    return round(max((abs(error) for error in errors if error is not None), default=0.0), 4)


@dataclass(frozen=True)
class Errors:
    """How far the estimates of a model are off, as parts of what was counted."""

    instructions: float | None
    cycles: float | None
    code: float


def error_of(model: CostModel, one: Example) -> Errors:
    guess = estimate(one.model, model)
    counted = one.counted
    return Errors(
        guess.instructions / counted.instructions - 1 if guess.instructions is not None else None,
        guess.cycles / counted.cycles - 1 if guess.cycles is not None and counted.cycles else None,
        guess.code_bytes / counted.code_bytes - 1,
    )


def save(model: CostModel) -> None:
    """As JSON, one entry to a line where there are many."""
    data = {key: value for key, value in asdict(model).items() if key != "target"}
    DATA.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1)
    (DATA / f"{model.target}.json").write_text(_narrow(text) + "\n", encoding="utf-8")


def _narrow(text: str) -> str:
    """Lists of numbers and of words on one line."""
    return re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(layer_counts.MACHINES), metavar="MACHINES")
    parser.add_argument("--keep-code", action="store_true", help="fit only instructions and cycles")
    parser.add_argument(
        "--keep-functions", action="store_true", help="fit the models' own code, without linking libraries"
    )
    parser.add_argument("--table", action="store_true", help="only write docs/COSTS.md")
    args = parser.parse_args()
    try:
        for machine in () if args.table else args.on.split(","):
            model = fit(machine, args.keep_code, args.keep_functions)
            save(model)
            print(
                f"{machine}: instructions within {model.instructions.error:.1%}, code within "
                f"{model.code.error:.1%}",
                flush=True,
            )
        find_model.cache_clear()
        from tools import costs_page

        costs_page.write()
    except TinymlError as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
