# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Chains of layers in bands of rows, with the kernels of every core: equal to numpy, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.chains import join_everything, random_chain
from tests.support.sketch import Sketch
from tinyml import harness, placing
from tinyml.bands.banded import Banded
from tinyml.emit.model import Provenance
from tinyml.interpret import interpret
from tinyml.pipeline import Options, compile_graph

CHECKED = harness.Options(check_arena=True)

MACHINES = [name for name, machine in harness.MACHINES.items() if machine.board and not machine.like]
CHAINS = 12


@pytest.mark.parametrize("machine", MACHINES)
def test_chains(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "in_bands", join_everything)
    sketch = Sketch(3)
    ends = [random_chain(seed, sketch=sketch).end for seed in range(CHAINS)]
    graph, sample = sketch.graph(*ends), sketch.sample()
    options = Options(target=harness.find_machine(machine).target.name)
    compiled = compile_graph(graph, "chains", Provenance("chains", "0" * 64, ""), options)
    assert sum(isinstance(chosen.layer.op, Banded) for chosen in compiled.selected) > CHAINS / 2
    result = harness.run_files(compiled.files, machine, [sample], options=CHECKED)
    (expected,) = interpret(graph, [sample])
    different = [y for y in graph.outputs if not np.array_equal(result.outputs[0][y], expected[y])]
    assert not different
