# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of library functions, linked again where the C of the runtime changed: ``tools.fit_costs --relink``.

The functions of headers that a compiler did not inline keep their sizes: they were seen in models' objects.
"""

from __future__ import annotations

from dataclasses import replace

from tinyml import harness
from tinyml.cost.model import Code, CostModel, find_model
from tools import code_tables

INLINE = "inline "
"""Before the name of a header's function that was not inlined."""
MOST = 0.8
"""Of the functions that are known, those that are linked again at least: others may be gone."""
CLOSE = 0.02
"""The part by which a recorded size may differ from one that is linked now."""


def relinked(machine: str) -> CostModel:
    """The costs of the core of a machine, with the sizes of all functions as they are linked now."""
    place = harness.find_machine(machine)
    old = find_model(place.target.name)
    assert old is not None, f"python -m tools.fit_costs --on {machine}"
    wanted = [name for name in old.code.functions if not _is_inline(old.code, name)]
    linked = code_tables.library_functions(place, wanted)
    assert len(linked) > MOST * len(wanted), f"only {len(linked)} of {len(wanted)} functions were linked"
    return replace(old, code=with_links(old.code, linked))


def with_links(code: Code, linked: dict[str, list[tuple[str, int]]]) -> Code:
    """``linked``: the pieces of every function, with their sizes. Functions that are gone are left out."""
    sizes = dict(code.pieces)
    functions = {
        name: {code.pieces[number][0] for number in pieces}
        for name, pieces in code.functions.items()
        if _is_inline(code, name)
    }
    for name, pieces in linked.items():
        sizes |= dict(pieces)
        functions[name] = {piece for piece, _ in pieces}
    used = sorted({piece for pieces in functions.values() for piece in pieces})
    numbers = {piece: number for number, piece in enumerate(used)}
    return replace(
        code,
        pieces=tuple((piece, sizes[piece]) for piece in used),
        functions={
            name: tuple(sorted(numbers[piece] for piece in pieces))
            for name, pieces in sorted(functions.items())
        },
    )


def changed(machine: str, names: list[str]) -> dict[str, tuple[int, int]]:
    """Of these functions, those whose recorded size is not close to what is linked now, with both sizes."""
    place = harness.find_machine(machine)
    model = find_model(place.target.name)
    assert model is not None, f"python -m tools.fit_costs --on {machine}"
    found = {}
    for name, pieces in code_tables.library_functions(place, (), only=names).items():
        recorded, now = model.code.linked([name]), sum(size for _, size in pieces)
        if abs(recorded - now) > CLOSE * now:
            found[name] = recorded, now
    return found


def _is_inline(code: Code, name: str) -> bool:
    return any(code.pieces[number][0] == f"{INLINE}{name}" for number in code.functions[name])
