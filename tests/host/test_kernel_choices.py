# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The figures by which kernels compete rank them as they were counted: benchmarks/kernel_counts.json."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest

from tinyml import harness
from tinyml.cores.core_data import measured
from tinyml.ir import Layer
from tinyml.memory.four_bits import LEAST_WEIGHTS
from tinyml.ops.framework.kernel import Kernel, Library
from tinyml.ops.framework.kernel_costs import estimated
from tinyml.ops.framework.work import work
from tinyml.pipeline import choose_kernels
from tinyml.settings.optimize import GOALS
from tools import kernel_counts
from tools.kernel_layers import CASES, FEW, FOUR_BITS, SHORT, SPARSE, Plain, sketched

WORST_CHOICE = 1.25
"""A selected kernel may take this much more than its rival: figures cannot fit small layers of all shapes."""

MEAN_CHOICE = 1.01
COMPETING = [
    name
    for name, case in CASES.items()
    if not (name in SPARSE or name in FOUR_BITS or name in FEW or name in SHORT or isinstance(case, Plain))
]
"""What loops take decides about few channels: tests/host/test_other_forms.py."""
MACHINES = sorted({one.machine for one in kernel_counts.load()})


@cache
def counts(machine: str) -> dict[str, dict[str, int]]:
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for one in kernel_counts.load():
        if one.machine == machine:
            found[one.layer][one.kernel] = one.instructions
    return found


class Competition(NamedTuple):
    """The layers of all cases, by name, and the kernels that can compute them on a machine."""

    machine: str
    contenders: Mapping[str, tuple[Layer, list[Kernel[Any]]]]


@pytest.fixture(scope="module", params=MACHINES)
def competition(request: pytest.FixtureRequest) -> Competition:
    target = harness.find_machine(request.param).target
    layers = {name: kernel_counts.layer_of(name) for name in CASES}
    found = {name: (layer, kernel_counts.contenders(layer, target)) for name, layer in layers.items()}
    return Competition(request.param, found)


def test_every_kernel_was_counted(competition: Competition) -> None:
    for name, (_, contenders) in competition.contenders.items():
        counted = set(counts(competition.machine).get(name, ()))
        assert counted == {kernel.name for kernel in contenders}, f"{name}: python -m tools.kernel_counts"


@pytest.mark.parametrize("machine", [name for name in MACHINES if "cortex" in name])
def test_selected_kernels_take_fewer_instructions(machine: str) -> None:
    target = harness.find_machine(machine).target
    graph = sketched(COMPETING)
    chosen, own, arm = (
        choose_kernels(graph, target, kernels, True, GOALS["speed"])
        for kernels in ("auto", "portable", "cmsis-nn")
    )
    ratios = {}
    for name, *rivals in zip(COMPETING, chosen, own, arm, strict=True):
        spent, *others = (counts(machine)[name][one.kernel.name] for one in rivals)
        ratios[name] = spent / min(others)
    assert max(ratios.values()) <= WORST_CHOICE, {name: r for name, r in ratios.items() if r > WORST_CHOICE}
    assert sum(ratios.values()) / len(ratios) <= MEAN_CHOICE
    libraries = {one.kernel.library for one in chosen}
    assert libraries == {Library.PORTABLE, Library.CMSIS_NN}, "each is the better one for some layers"


@pytest.mark.parametrize("machine", [name for name in MACHINES if "cortex" in name])
def test_kernels_for_four_bits_compete(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CMSIS-NN's are chosen where they take fewer instructions; layers that keep bytes do not count."""
    monkeypatch.setattr("tinyml.memory.four_bits.saved_bytes", lambda *_: 1 << 20)
    monkeypatch.setattr("tinyml.memory.select.fast_enough", lambda *_: True)
    target = harness.find_machine(machine).target
    names = [name for name, case in FOUR_BITS.items() if math.prod(case.weights) >= LEAST_WEIGHTS]
    assert len(names) > 40
    for name in names:
        packed = counts(machine)[name]
        (found,) = choose_kernels(sketched([name]), target, "auto", True, GOALS["speed"])
        assert packed[found.kernel.name] <= WORST_CHOICE * min(packed.values()), name


def test_figures_are_close_to_the_counts(competition: Competition) -> None:
    """Half of all layers within 5 %, nine tenths within 20 %; short filters are chosen by their loops."""
    machine = competition.machine
    kernels = measured(harness.find_machine(machine).target.name)["instructions"]["kernels"]
    errors = []
    for name, (layer, contenders) in competition.contenders.items():
        for kernel in () if name in SHORT else contenders:
            guess = estimated(kernels, kernel, work(layer))
            assert guess is not None, f"{kernel.name}: python -m tools.fit_costs"
            errors.append(abs(guess / counts(machine)[name][kernel.name] - 1))
    errors.sort()
    assert errors[len(errors) // 2] < 0.05
    assert errors[len(errors) * 9 // 10] < 0.20
