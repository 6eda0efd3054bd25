# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random models of all kinds, always the same ones: none is computed wrongly.

``python -m tools.random_graphs --count 10000`` tries more. A failure prints its recipe, already shrunk.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.depth import is_deep
from tests.random_graphs.check import check, shrink
from tests.random_graphs.played import check_played
from tests.random_graphs.recipe import KINDS, LOOP_KINDS, QUANTISED_LOOP, TFLITE_OPS, Recipe, recipe

EACH = 56 if is_deep() else 6
"""Of nineteen kinds: 1,064 models, of which `make test` takes the first tenth."""

C_EVERY = 4
"""Every fourth of them is compiled and run as C too; numpy after all passes is compared for each."""

FOUND: tuple[Recipe, ...] = (
    # uint8 inputs whose meaning the file tells only after a MaxPool, a Transpose or a Reshape
    Recipe("qop_u8", 1, 8, 3, (209201782, 453930524, 169115091)),
    Recipe("qop_u8", 1, 1, 1, (785757813, 461493659)),
    Recipe("qop_u8", 1, 1, 1, (523958651, 1025419933)),
    # a loop of which nothing is read, which `quantize` wrote as a Loop without outputs
    Recipe("quantised_loop", 8, 9, 7, (289577349,)),
    # an operand of one branch of an If that is computed before the condition, in numpy
    Recipe("loop_qdq", 1, 1, 6, (724428368,)),
    # LEAKY_RELU of bytes with a slope of -1, a step off where LiteRT's two roundings meet
    Recipe("tflite_ops", 1, 1, 1, (99959149, 848182063, 798190645, 1042656521)),
)
"""What was wrong once. The faults are also cases of tests/ops, which do not depend on the generator."""


@pytest.mark.parametrize("kind", KINDS)
def test_random_graphs(kind: str) -> None:
    pytest.importorskip("onnxruntime", reason="the reference of ONNX models")
    if kind.startswith("tflite"):
        pytest.importorskip("ai_edge_litert", reason="the reference of TFLite models")
    tally = check((recipe(number, 18, (kind,)) for number in range(EACH)), c_every=C_EVERY)
    assert not tally.wrong, "\n".join(f"{shrink(found)}: {why}" for found, why in tally.wrong.items())
    share = 5 if kind in (TFLITE_OPS, QUANTISED_LOOP) else 20
    assert tally.refused.total() <= -(-EACH // share), tally.refused
    assert tally.ties <= (
        0 if kind.startswith("tflite") else -(-EACH // 4) if kind == "qdq_s16" else -(-EACH // 10)
    )


def test_models_that_were_wrong() -> None:
    pytest.importorskip("onnxruntime", reason="the reference of ONNX models")
    tally = check(FOUND)
    assert not tally.wrong
    assert tally.equal == len(FOUND)


def test_a_fault_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong Relu in numpy, what is left of a failing model is about that operator alone."""
    from tinyml.ops.elementwise.clamp import Clamp

    genuine = Clamp.evaluate
    monkeypatch.setattr(Clamp, "evaluate", lambda op, layer, x: (genuine(op, layer, x)[0] + 1,))
    tally = check((recipe(number, 18, ("float",)) for number in range(40)), in_c=False)
    assert tally.wrong
    in_numpy = partial(check, in_c=False)
    assert min(len(shrink(found, in_numpy).steps) for found in tally.wrong) <= 2


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_random_loops_are_played(kind: str) -> None:
    """As data, they give every bit that their C gives; the player has a kernel for almost all layers."""
    tally = check_played((recipe(number, 20, (kind,)) for number in range(EACH)), "host")
    assert not tally.wrong, "\n".join(f"{found}: {why}" for found, why in tally.wrong.items())
    assert tally.refused.total() <= -(-EACH // 20), tally.refused
