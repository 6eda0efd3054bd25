# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of RNN, GRU and LSTM on floats run: runtime/recurrent."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.work import Work
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.weighted.float_counts import filters
from tinyml.ops.weighted.walked import times, together

TILES = "tinyml_add_product_tiles_f32"


@dataclass(frozen=True)
class Run:
    """All steps of all batches of a layer. ``products`` multiply by the matrices of input and state."""

    cell: str
    steps: int
    batches: int
    inputs: int
    hidden: int
    functions: Sequence[str]
    products: tuple[str, str]
    before_reset: bool  # GRU multiplies by the matrix before it resets
    sequence: bool  # the states of all steps are outputs


def recurrent(run: Run) -> Work:
    """What every step does, and what states take."""
    gates, hidden, turns = GATES[run.cell], run.hidden, run.steps * run.batches
    functions = zip(run.functions, (gates - 1 or 1, 1, 1), strict=False)
    each = together(
        {"steps": 1, f"cells{' before reset' * run.before_reset}": hidden},
        *({f"activations {name}": count * hidden} for name, count in functions),
        _product(run.products[0], gates, hidden, run.inputs),
        _product(run.products[1], gates, hidden, hidden),
    )
    given = turns * hidden * run.sequence
    states = {"calls": 1, "batches": run.batches, "states": run.batches * hidden, "outputs": given}
    return together(states, times(turns, each))


def _product(function: str, gates: int, rows: int, columns: int) -> Work:
    """A vector times the matrices of all gates."""
    if function == TILES:
        return times(gates, filters(rows, 1, columns, 1, two=False))
    kind = "bytes" if function.endswith("_s8") else "inputs"
    return {f"rows of {kind}": gates * rows, f"elements of {kind}": gates * rows * columns}
