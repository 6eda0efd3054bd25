# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit the costs by which ``tinyml.cost`` estimates, and write docs/COSTS.md with the error of each estimate.

``python -m tools.fit_costs [--on qemu-cortex-m4,...]
    [--keep-code | --new | --loops | --cycles | --relink | --table]``

Instructions and cycles are fitted to benchmarks/layer_counts.json (``python -m tools.layer_counts`` counts
them again). Code is linked function by function. The costs of a core go into plugin/tinyml/cost/data.
``--keep-code`` fits only instructions and cycles; ``--keep-functions`` also the code of models, with the
sizes of library functions as they are; ``--new`` only adds kernels without figures; ``--loops`` only fits
the loops of kernels; ``--cycles`` only fits cycles, by which nothing is chosen; ``--relink`` only links the
functions of libraries again; ``--table`` only writes the page, from the costs as they are.
Requires the Arm tools, CMSIS-NN, and the published models in the folder ``TINYML_MODELS``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from tools import layer_counts
from tools.cost_examples import Example, examples, left_out, single_layers
from tools.environment import ROOT
from tools.fit_code import fit_code
from tools.fit_links import relinked
from tools.fit_loops import with_loops
from tools.fit_new import with_new
from tools.fit_speed import fit_evenly

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.bench import record
from tinyml.cores.core_data import DATA
from tinyml.cost import cycles
from tinyml.cost.estimate import estimate
from tinyml.cost.model import CostModel, Speed, find_model, own_loops


def fit(machine: str, keep_code: bool = False, keep_functions: bool = False) -> CostModel:
    """All costs of the core of a machine, with their errors; what is kept is that of the last fit."""
    known = examples(machine)
    target = harness.find_machine(machine).target.name
    old = find_model(target) if keep_code or keep_functions else None
    weighing = cycles.MODELS.get(target)
    by_sizes = fit_evenly(known, single_layers(machine, "instructions"), "instructions")
    model = CostModel(
        target,
        record.compiler_name([machine]),
        with_loops(replace(by_sizes, own_loops=own_loops(target)), machine),
        fit_cycles(machine, known),
        weighing.how if weighing else "",
        old.code if old and keep_code else fit_code(machine, known, old.code if old else None),
    )
    return with_errors(model, known)


def fit_cycles(machine: str, known: list[Example]) -> Speed | None:
    timed = [one for one in known if one.counted.cycles is not None]
    return fit_evenly(timed, single_layers(machine, "cycles"), "cycles") if timed else None


def with_errors(model: CostModel, known: list[Example]) -> CostModel:
    """With the worst error of each kind of cost over all published models."""
    errors = [error_of(model, one) for one in known]
    return replace(
        model,
        instructions=replace(model.instructions, error=_worst(e.instructions for e in errors)),
        cycles=replace(model.cycles, error=_worst(e.cycles for e in errors)) if model.cycles else None,
        code=replace(model.code, error=_worst(e.code for e in errors)),
    )


def refitted_loops(machine: str) -> CostModel:
    """The last fit with other figures of loops."""
    model = find_model(harness.find_machine(machine).target.name)
    assert model is not None, f"python -m tools.fit_costs --on {machine}"
    again = replace(model, instructions=with_loops(model.instructions, machine))
    return with_errors(again, examples(machine))


def refitted_cycles(machine: str) -> CostModel:
    """The last fit with other figures of cycles; none is lost that was counted with llvm-mca elsewhere."""
    model = find_model(harness.find_machine(machine).target.name)
    assert model is not None, f"python -m tools.fit_costs --on {machine}"
    known = examples(machine)
    found = fit_cycles(machine, known)
    lost = sorted((model.cycles or Speed()).kernels.keys() - (found or Speed()).kernels.keys())
    if lost:
        raise TinymlError(
            f"{machine}: no cycles were counted for {', '.join(lost)}, which have figures",
            "count layers and kernels again where llvm-mca has a model of the core",
        )
    return with_errors(replace(model, cycles=found), known)


def relinked_code(machine: str) -> CostModel:
    """The last fit with other sizes of library functions."""
    return with_errors(relinked(machine), examples(machine))


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
    for speed in (data["instructions"], data["cycles"] or {}):
        speed.pop("core", None)  # the file's name says it
        speed.pop("own_loops", None)  # in a file of their own
    DATA.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1)
    (DATA / f"{model.target}.json").write_text(narrow(text) + "\n", encoding="utf-8")


def narrow(text: str) -> str:
    """Lists of numbers and of words on one line."""
    return re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(layer_counts.MACHINES), metavar="MACHINES")
    parser.add_argument("--keep-code", action="store_true", help="fit only instructions and cycles")
    parser.add_argument(
        "--keep-functions", action="store_true", help="fit the models' own code, without linking libraries"
    )
    parser.add_argument("--new", action="store_true", help="only kernels that have no figures")
    parser.add_argument("--loops", action="store_true", help="only the loops of kernels")
    parser.add_argument("--cycles", action="store_true", help="only cycles")
    parser.add_argument("--relink", action="store_true", help="only the sizes of library functions")
    parser.add_argument("--table", action="store_true", help="only write docs/COSTS.md")
    args = parser.parse_args()
    try:
        for machine in () if args.table else args.on.split(","):
            if args.loops:
                model = refitted_loops(machine)
            elif args.cycles:
                model = refitted_cycles(machine)
            elif args.relink:
                model = relinked_code(machine)
            else:
                model = with_new(machine) if args.new else fit(machine, args.keep_code, args.keep_functions)
            save(model)
            print(
                f"{machine}: instructions within {model.instructions.error:.1%}, code within "
                f"{model.code.error:.1%}",
                flush=True,
            )
            for name, reason in left_out(machine).items():
                print(f"  without {name}, which {reason}", flush=True)
        find_model.cache_clear()
        if args.new or args.loops or args.cycles or args.relink:
            return 0
        from tools import costs_page

        costs_page.write()
    except TinymlError as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
