# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random single layers on the host, and what their campaign does about a layer that fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.depth import is_deep
from tests.random_layers import check as checking
from tests.random_layers.batch import Batch, batch
from tests.random_layers.check import Choices, Place, Tally, check
from tinyml.base.errors import ToolError
from tools import random_layers

HOST = Place("host", "portable")
COUNT = 60 if is_deep() else 16  # layers for each choice of settings


@pytest.mark.parametrize("number", range(4))
def test_layers_on_the_host(number: int) -> None:
    """Under sanitizers; ``test_sampled_layers.py`` and the campaign have emulated cores."""
    tally = check(batch(18, number, size=COUNT), HOST, Choices.of(number))
    assert not tally.wrong
    assert tally.equal == COUNT


def test_attention_on_the_host() -> None:
    """With masks at run time, some of which hide all keys."""
    tally = check(batch(18, 0, size=COUNT, kind="attention"), HOST, Choices.of(0))
    assert not tally.wrong
    assert set(tally.kernels) == {"tinyml_attention_s8", "tinyml_attention_f32"}


def test_the_same_seed_gives_the_same_layers() -> None:
    one, two = batch(3, 5, size=10), batch(3, 5, size=10)
    assert one.graph.nodes == two.graph.nodes
    assert all(np.array_equal(one.inputs[name], two.inputs[name]) for name in one.inputs)
    assert batch(4, 5, size=10).graph.nodes != one.graph.nodes


def test_a_layer_that_differs_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = batch(3, 0, size=6)
    node = made.graph.nodes[2]
    (output,) = node.outputs
    wrong = replace(made, expected={**made.expected, output: made.expected[output] + 1})
    monkeypatch.setattr(random_layers, "batch", lambda *_, **__: wrong)
    monkeypatch.setattr(
        "sys.argv", ["random_layers", "--count", "6", "--on", "host", "--kernels", "portable"]
    )
    assert random_layers.main() == 1
    printed = capsys.readouterr().out
    assert f"wrong on host, portable (balanced): {node.name}: {made.expected[output].size} of" in printed
    assert f"--seed 1 --batch 0 --layer {node.name} --on host --kernels portable" in printed
    assert "host, portable: 5 equal, 1 wrong" in printed


def test_a_layer_that_ends_the_program_is_found_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    made = batch(3, 0, size=16)
    culprit = made.graph.nodes[11].name

    def run(part: Batch, place: Place, choices: Choices, refused: set[str]) -> Tally:
        names = [node.name for node in part.graph.nodes]
        if culprit in names:
            raise ToolError("the program ended")
        return Tally(equal=len(names))

    monkeypatch.setattr(checking, "_run", run)
    tally = check(made, HOST, Choices.of(0))
    assert list(tally.wrong) == [culprit]
    assert tally.equal == 15
