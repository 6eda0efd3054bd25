# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators whose loops are written into the model, on every core: some cases of ``tests/ops``."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from tests.random_layers.batch import batch
from tests.random_layers.check import Choices, Place, check
from tests.support.cases import Case
from tests.support.interpret import interpret
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.pipeline import Options, compile_graph, optimize

CHECKED = harness.Options(check_arena=True)

MACHINES = [*harness.CORES, "qemu-riscv32-zve32x"]

CHOSEN = {
    # Clang 19 crashed on these for vectors
    "quantised": ("Mul_int8_0.25", "ReduceMean_8_0.125"),
    "trees": ("mixed_modes", "missing"),
    "movement": ("dynamic_update_1",),
    "signal_int16": ("preprocessor",),
    "volumes": ("int8_strides", "int8_groups", "uint8_strides"),
}


def find(file: str, name: str) -> Case:
    cases: list[Case] = import_module(f"tests.ops.{file}").CASES
    return next(case for case in cases if case.name == name)


@pytest.mark.parametrize("file,name", [(file, name) for file, names in CHOSEN.items() for name in names])
@pytest.mark.parametrize("machine", MACHINES)
def test_operator(machine: str, file: str, name: str) -> None:
    case = find(file, name)
    options = Options(target=harness.find_machine(machine).target.name)
    compiled = compile_graph(case.graph(), "case", Provenance(name, "0" * 64, ""), options)
    (found,) = harness.run_files(compiled.files, machine, [case.inputs], options=CHECKED).outputs
    for key, expected in interpret(optimize(case.graph()), case.inputs).items():
        np.testing.assert_array_equal(found[key], expected)


def test_no_layer_is_removed() -> None:
    """GCC 12 removed the call of one of these hundred layers: it took it for a function without effects."""
    tally = check(batch(1, 0, kind="volumes"), Place("qemu-cortex-m4", "portable"), Choices.of(0))
    assert not tally.wrong
    assert tally.equal == 100
