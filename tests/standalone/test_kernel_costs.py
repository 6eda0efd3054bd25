# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The recorded costs still rank kernels correctly: the selected kernel is the one that needs less."""

from __future__ import annotations

import pytest

from tinyml import harness
from tinyml.ops.framework.kernel import kernel_table
from tinyml.setup.workspace import find_cmsis_nn
from tools.kernel_costs import LAYERS, MACHINES, Count, contenders, count, sketched, wrong_choices

REPRESENTATIVE = (
    "pointwise_32_to_32",
    "first_of_images",
    "square_16_to_16",
    "depthwise_32",
    "depthwise_5x5",
    "depthwise_stream",
    "depthwise_four",
    "dense_128",
)


@pytest.mark.parametrize("column,machine", MACHINES.items())
def test_selected_kernels_need_fewer_instructions(column: str, machine: str) -> None:
    if find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    counts = count(column, REPRESENTATIVE)
    assert {each.case for each in counts} == set(REPRESENTATIVE)
    assert wrong_choices(column, counts) == [], f"measure again on {machine}: python -m tools.kernel_costs"


def test_every_operator_with_costs_has_layers_to_measure() -> None:
    measured = {type(case.op) for case in LAYERS.values()}
    assert {op for op, kernels in kernel_table().items() if any(k.cost for k in kernels)} == measured


def test_a_wrong_choice_is_reported() -> None:
    """With counts in the reverse order of the costs, the selected kernel is the worst."""
    counts = [
        Count(each.case, each.layer, each.kernel, 1_000_000 // each.instructions)
        for each in estimated("plain", "dense_128")
    ]
    (complaint,) = wrong_choices("plain", counts)
    assert complaint.startswith("dense_128 on cortex-m3: tinyml_dense_quads_s8 is selected")


def estimated(column: str, name: str) -> list[Count]:
    """Counts that are just what the costs predict."""
    target = harness.find_machine(MACHINES[column]).target
    (layer,) = sketched([name]).layers()
    return [
        Count(name, layer, kernel, round(kernel.cost.instructions(layer, target)))
        for kernel in contenders(layer, target)
        if kernel.cost
    ]
