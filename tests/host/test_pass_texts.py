# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Passes as text in, text out; and the parser that makes this possible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import tinyml.ops.catalog  # noqa: F401  the parser knows operators that are imported
from tests.support.interpret import interpret
from tests.support.layer_kinds import random_values
from tinyml.base.errors import ModelError
from tinyml.ir.text import dump
from tinyml.ir.text_parser import parse
from tinyml.ir.verifier import verify
from tinyml.passes import PASSES, Pass

FOLDER = Path(__file__).parents[1] / "passes"
"""A file for each pass. A case is a comment, a graph, and what it becomes, unless it stays the same."""


@dataclass(frozen=True)
class Rewrite:
    step: Pass
    name: str
    before: str
    after: str


def rewrites(step: Pass) -> list[Rewrite]:
    """The cases of a pass."""
    path = FOLDER / f"{step.__name__}.txt"
    found = []
    for case in path.read_text(encoding="utf-8").split("# ")[1:] if path.is_file() else ():
        name, text = case.split("\n", 1)
        before, _, after = text.partition("becomes\n")
        found.append(Rewrite(step, name, normal(before), normal(after or before)))
    return found


def normal(text: str) -> str:
    """As ``dump`` prints it."""
    lines = dedent(text).strip().splitlines()
    return "graph g\n" + "".join(f"  {line}\n" for line in lines)


STEPS = tuple(dict.fromkeys(PASSES))
UNWRITTEN = (
    *("fuse_attention", "fuse_recurrent", "keep_last_step", "read_integers", "roll_recurrent"),
    *("tabulate_bytes", "tabulate_functions", "tabulate_products"),
)
"""Passes on operators with attributes that the text leaves out: activations, tables, trees."""

REWRITES = [case for step in STEPS for case in rewrites(step)]


@pytest.mark.parametrize("case", REWRITES, ids=lambda case: f"{case.step.__name__}: {case.name}")
def test_rewrite(case: Rewrite) -> None:
    graph = parse(case.before)
    assert dump(graph) == case.before
    verify(graph, "the test")
    after = case.step(graph)
    verify(after, case.step.__name__)
    assert dump(after) == case.after


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_rewritten_graphs_compute_the_same(step: Pass) -> None:
    """So that an expected text cannot be wrong itself. Integers may differ by one step where layers join."""
    for case in rewrites(step):
        before, after = parse(case.before), parse(case.after)
        rng = np.random.default_rng(18)
        sources = (*before.inputs, *(state.tensor for state in before.states))
        sample = {name: random_values(rng, before.tensors[name]) for name in sources}
        wanted, found = interpret(before, sample), interpret(after, sample)
        for name in before.outputs:
            np.testing.assert_allclose(
                np.asarray(found[name], np.float64),
                np.asarray(wanted[name], np.float64),
                rtol=1e-5,
                atol=1e-6 if before.tensors[name].dtype.is_float else 1,
                err_msg=f"{step.__name__}: {case.name}",
            )


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_every_pass_has_what_it_changes_and_what_it_leaves_alone(step: Pass) -> None:
    if step.__name__ in UNWRITTEN:
        assert Path(__file__).with_name(f"test_{step.__name__}.py").is_file()
        return
    changes = [case.before != case.after for case in rewrites(step)]
    assert any(changes), f"tests/passes/{step.__name__}.txt has no graph that the pass changes"
    assert not all(changes), f"tests/passes/{step.__name__}.txt has no graph that the pass leaves alone"


def test_every_file_belongs_to_a_pass() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {
        step.__name__ for step in STEPS if step.__name__ not in UNWRITTEN
    }


def test_parser_reads_states_and_absent_operands() -> None:
    linear = "round_once=False, single_scales=False, real=False"
    text = normal(f"""
        input x: float32[4]
        state s: float32[4] <- y
        a: float32[4] = Binary(x, s; clamp=-infxinf, function=add, round_once=False)
        y: float32[4] = Dense(a, const float32[4x4], -; clamp=-infxinf, {linear})
        output y
        """)
    assert dump(parse(text)) == text


@pytest.mark.parametrize(
    "line, words",
    [
        ("y: float32[1x4] = Nonsense(x)", "is not a node"),
        ("y = Reshape(x)", "is not a type"),
        ("y: float32[4] = Clamp(x; width=3)", "has no attribute 'width'"),
        ("y: int8[2] q(axis 0, 2 scales) = Reshape(x)", "are not in the text"),
    ],
)
def test_parser_refuses(line: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse(f"graph g\n  input x: float32[4]\n  {line}\n")
