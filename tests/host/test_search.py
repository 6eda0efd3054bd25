# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml.search`: candidates over the budget are not trained; several processes share a study."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tinyml.api import pareto, searching
from tinyml.base.errors import ConfigError, ToolError

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 3
SEEDS = (3, 7)
"""With which the first candidate of either sample is within its budget."""


def dense(width: int) -> onnx.ModelProto:
    weights = numpy_helper.from_array(np.ones((8, width), np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "dense", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def build(trial: Any) -> onnx.ModelProto:
    return dense(trial.suggest_int("width", 1, 64))


@pytest.fixture(autouse=True)
def _optuna() -> None:
    pytest.importorskip("optuna")


@pytest.mark.parametrize("returned", ["good", (0.5, None, 1), None])
def test_what_train_must_return(returned: Any) -> None:
    with pytest.raises(ConfigError, match=r"train returned .*\n.*the score, a number, or"):
        tinyml.search(build, lambda trial, model: returned, budget={"ram": "64K"}, trials=1)


def test_no_trials() -> None:
    with pytest.raises(ConfigError, match="0 trials are too few"):
        tinyml.search(build, lambda trial, model: 1.0, budget={"ram": "64K"}, trials=0)


def test_what_exceeds_the_budget_is_not_trained() -> None:
    trained: list[int] = []

    def train(trial: Any, model: onnx.ModelProto) -> float:
        trained.append(trial.params["width"])
        return float(trial.params["width"])

    found = tinyml.search(build, train, budget={"ram": 4 * (8 + 32)}, trials=12, seed=3)
    assert repr(found).startswith("<SearchResult: 12 candidates, ")
    assert "; best: " in repr(found)
    assert len(found.candidates) == 12
    within = [one for one in found.candidates if one.parameters["width"] <= 32]
    assert 0 < len(within) < 12
    assert sorted(trained) == sorted(one.parameters["width"] for one in within)
    assert {one.score is None for one in found.candidates if one not in within} == {True}
    assert all("ram: " in one.why for one in found.candidates if one.score is None)
    assert found.best.score == max(trained)


def test_several_objectives_and_the_trained_model() -> None:
    """The cost of the model that training returns counts: here it is always the same small one."""

    def train(trial: Any, model: onnx.ModelProto) -> tuple[float, onnx.ModelProto]:
        return -float(trial.params["width"]), dense(2)

    found = tinyml.search(
        build, train, budget={"cycles": 1e6}, objectives=("score", "cycles"), trials=5, seed=1
    )
    assert len({one.costs["cycles"] for one in found.candidates}) == 1
    assert [one.number for one in found.front] == [found.best.number]


def test_a_model_that_does_not_compile_is_no_candidate() -> None:
    def text(trial: Any) -> bytes:
        return b"not a model"

    found = tinyml.search(text, lambda *_: 1.0, budget={"ram": "1K"}, trials=2)
    assert [one.score for one in found.candidates] == [None, None]
    assert all(one.why for one in found.candidates)
    with pytest.raises(ToolError, match="no candidate was trained"):
        _ = found.best


def test_the_plot() -> None:
    found = tinyml.search(
        build,
        lambda trial, _: float(trial.params["width"]),
        budget={"ram": "1K"},
        objectives=("score", "flash"),
        trials=5,
        seed=2,
    )
    picture = ET.fromstring(found.plot())
    circles = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 5
    assert found.plot("ram").count("<circle") == 5
    assert "width" in found._repr_html_()
    with pytest.raises(ConfigError, match="unknown cost 'time'"):
        found.plot("time")  # type: ignore[arg-type]


def test_trials_that_another_process_still_runs_do_not_count(tmp_path: Path) -> None:
    import optuna

    storage = str(tmp_path / "journal.log")
    other = optuna.create_study(
        study_name="tinyml", storage=searching._storage(storage), directions=["maximize"]
    )
    other.ask()  # never told: it is running
    found = tinyml.search(
        build, lambda trial, model: 1.0, budget={"ram": "64K"}, trials=2, storage=storage, progress=False
    )
    assert [one.number for one in found.candidates] == [1, 2]
    assert all(one.score == 1.0 for one in found.candidates)


def test_the_plot_names_the_best_and_the_budget() -> None:
    points = [pareto.Point(10, 0.5, "a", True, "width 8"), pareto.Point(20, 0.9, "b", True, "width 16")]
    points.append(pareto.Point(30, 0.4, "c", False))
    drawn = pareto.scatter(points, "ram", "score", 40)
    assert ">width 8<" in drawn
    assert ">width 16<" in drawn
    assert ">budget 40<" in drawn
    assert "budget" not in pareto.scatter(points, "ram", "score", 400), "far beyond all points"
    same = [pareto.Point(10, 0.5, "a", True, "one"), pareto.Point(10, 0.501, "b", True, "two")]
    assert ">one<" not in pareto.scatter([*same, *points], "ram", "score"), "labels do not cover each other"


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"budget": {"rom": "1K"}}, "a budget has no 'rom'"),
        ({"budget": {"ram": "many"}}, "'many' is not a number of bytes"),
        ({"budget": {"cycles": "many"}}, "'many' is not a budget for cycles"),
        ({"budget": {"milliseconds": 3}}, "requires the clock rate"),
        ({"budget": {}, "objectives": ("score", "time")}, "objectives cannot be"),
        ({"budget": {}, "objectives": ("milliseconds",)}, "require the clock rate"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tinyml.search(build, lambda *_: 1.0, **settings)


@pytest.mark.parametrize("sample", ["digits", "gesture"])
def test_two_processes_share_an_example(sample: str, tmp_path: Path) -> None:
    """The samples' search.py for real: a few candidates, from two processes on one journal file."""
    pytest.importorskip("sklearn")
    folder = ROOT / "samples" / sample
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(folder / "search.py"), "--trials", str(TRIALS)]
    words += ["--storage", str(tmp_path / "journal")]
    if sample == "gesture":
        _record(tmp_path / "recordings")
        words += ["--recordings", str(tmp_path / "recordings"), "--epochs", "2"]
    both = [
        subprocess.Popen(
            [*words, "--plot", str(tmp_path / f"{seed}.svg"), "--seed", str(seed)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in SEEDS
    ]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    counts = [int(re.findall(r"^(\d+) candidates", text)[0]) for text in said]
    assert TRIALS <= max(counts) <= TRIALS + 1  # each may have had one under way
    assert re.search(r"^\d\d\.\d %  \d\.\d\d ms ", max(said, key=len), re.MULTILINE), said
    assert (tmp_path / f"{SEEDS[0]}.svg").read_text().startswith("<svg")


def _record(folder: Path) -> None:
    """Some recordings of each gesture, as samples/gesture/record.py synthesises them."""
    record = runpy.run_path(str(ROOT / "samples" / "gesture" / "record.py"))
    random = np.random.default_rng(1)
    for gesture in ("circle", "idle", "shake", "wave"):
        (folder / gesture).mkdir(parents=True)
        for number in range(20):
            samples = record["recording"](gesture, 4 * record["RATE"], random)
            np.savetxt(folder / gesture / f"{number}.csv", samples, "%.3f", ",")
