# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How much code models have: functions of libraries are linked one by one, the models' own code is fitted."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tools import code_tables
from tools.code_tables import OwnCode
from tools.cost_examples import Example, Known, tally_of
from tools.environment import ROOT
from tools.fit_figures import factors, figures

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cores.machines import Machine
from tinyml.cost.estimate import UNSURE, inner_names, own_amounts
from tinyml.cost.estimate import functions as functions_of
from tinyml.cost.model import Code, written
from tinyml.pipeline import banded_layers


def fit_code(machine: str, known: Sequence[Example], old: Code | None = None) -> Code:
    """Link every function (unless ``old`` has their sizes), and fit the size of the models' own code."""
    place = harness.find_machine(machine)
    own = [code_tables.own_code(one.model, place) for one in known]
    linked = old or _linked(place, own, known)
    layers = [layer for one, code in zip(known, own, strict=True) for layer in _sized(one, code)]
    operations = figures([(written(o.layer, tally_of(o)), o.spent, o.whole) for o in layers])
    found = factors(layers, lambda o: written(o.layer, tally_of(o)), operations)
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
    tallies = one.model.tallies
    seen: set[str] = set()
    for step, size in sorted(code.layers.items()):
        chosen = one.model.selected[step]
        if tallies[step].body in seen or size == 0:
            continue
        seen.add(tallies[step].body)
        whole = float(one.counted.glue_bytes)
        yield Known(one.counted.model, chosen.layer, chosen.kernel, tallies.get(step), float(size), whole)


def _helpers(known: Sequence[Example], own: Sequence[OwnCode]) -> dict[str, tuple[str, ...]]:
    """What the compiler calls for each kind of layer without a call in the C: soft floats, copies."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one, code in zip(known, own, strict=True):
        tallies = one.model.tallies
        for step, names in code.refers.items():
            chosen = one.model.selected[step]
            if banded_layers(chosen.layer) is not None:
                continue
            called = {name.removesuffix("()") for name in tallies[step].written} | UNSURE
            ours = (one.model.name, "tinyml_", "arm_", ".")
            for key in inner_names(chosen.layer, chosen.kernel):
                found[key] |= {name for name in names - called if not name.startswith(ours)}
    return {key: tuple(sorted(names)) for key, names in sorted(found.items()) if names}
