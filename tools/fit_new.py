# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Costs of kernels that have none yet, beside those that were fitted before: ``tools.fit_costs --new``.

They are fitted to the layers of ``python -m tools.kernel_counts`` and, loop by loop, of
``python -m tools.contender_counts``, which takes seconds. Fit everything when published models use these
kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from tinyml import harness
from tinyml.cores.machines import Machine
from tinyml.cost.model import Code, CostModel, Speed, find_model
from tinyml.ops.framework.kernel_costs import Figures, variant
from tinyml.ops.framework.work import Work, work
from tools import code_tables
from tools.cost_examples import single_layers
from tools.fit_figures import figures
from tools.fit_loops import loop_figures

AGAIN = "tinyml_conv"
"""Functions that begin with this are linked again: new kernels share their code."""
UNPUBLISHED = "tinyml_attention"
"""Kernels that begin with this get figures again: no published model has them, so no other figure depends on
these, and more kinds of their layers are counted now and then."""


def with_new(machine: str) -> CostModel:
    """The costs of the core of a machine, with figures for kernels that had none."""
    place = harness.find_machine(machine)
    old = find_model(place.target.name)
    assert old is not None, f"python -m tools.fit_costs --on {machine}"
    return replace(
        old,
        instructions=replace(
            _fitted(old.instructions, machine, "instructions"), loops=_loops(old.instructions, machine)
        ),
        cycles=_fitted(old.cycles, machine, "cycles") if old.cycles else None,
        code=_linked(old.code, place),
    )


def _fitted(speed: Speed, machine: str, cost: str) -> Speed:
    samples: defaultdict[str, list[tuple[Work, float, float]]] = defaultdict(list)
    for one in single_layers(machine, cost):
        amounts = work(one.layer)
        samples[variant(one.kernel, amounts)].append((amounts, one.spent, one.whole))
    known = {key for key in speed.kernels if not key.startswith(UNPUBLISHED)}
    found = {key: figures(some) for key, some in samples.items() if key not in known}
    return replace(speed, kernels=dict(sorted({**speed.kernels, **found}.items())))


def _loops(speed: Speed, machine: str) -> Mapping[str, Figures]:
    """New kernels that say how often their loops run get figures of these, from every layer counted."""
    known = {name for key in speed.kernels if not (name := key.split()[0]).startswith(UNPUBLISHED)}
    found = {name: one for name, one in loop_figures(machine).items() if name not in known}
    old = {name: one for name, one in speed.loops.items() if not name.startswith(UNPUBLISHED)}
    return dict(sorted({**found, **old}.items()))


def _linked(code: Code, place: Machine) -> Code:
    """With the functions that were never linked; pieces of code keep their numbers."""
    known = {name for name in code.functions if not name.startswith(AGAIN)}
    found = code_tables.library_functions(place, (), known)
    sizes = dict(code.pieces)
    for pieces in found.values():
        sizes |= dict(pieces)
    names = [piece for piece, _ in code.pieces]
    names += sorted(sizes.keys() - set(names))
    numbers = {piece: number for number, piece in enumerate(names)}
    functions = {name: tuple(sorted(numbers[piece] for piece, _ in pieces)) for name, pieces in found.items()}
    return replace(
        code,
        pieces=tuple((piece, sizes[piece]) for piece in names),
        functions=dict(sorted({**code.functions, **functions}.items())),
    )
