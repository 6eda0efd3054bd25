# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers with packed weights on every core: assembly, Helium and plain C."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.any_plan import any_plan
from tests.support.block_layers import KERNELS, layers, sample
from tests.support.interpret import interpret
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.pipeline import Options, compile_graph

CHECKED = harness.Options(check_arena=True)


@pytest.mark.parametrize("machine", harness.CORES)
def test_layers(machine: str) -> None:
    graph = layers()
    options = Options(target=harness.find_machine(machine).target.name)
    with any_plan():
        compiled = compile_graph(graph, "case", Provenance("layers", "0" * 64, ""), options)
    names = [chosen.kernel.name for chosen in compiled.selected]
    assert {name: names.count(name) for name in KERNELS} == KERNELS
    given = sample(graph)
    (found,) = harness.run_files(compiled.files, machine, [given], options=CHECKED).outputs
    for key, expected in interpret(graph, given).items():
        np.testing.assert_allclose(found[key], expected, rtol=1e-5, atol=2e-5, err_msg=key)
