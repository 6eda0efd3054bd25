# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of cost: against what was counted, and in the API, the commands and the budgets."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tinyml
from tests.ops.trees import FEATURES, ML, forest
from tests.support.quantizing import FLOAT
from tinyml import harness
from tinyml.cores.core_data import DATA
from tinyml.cost.error_bars import DOUBTFUL, ErrorBars
from tinyml.cost.estimate import _may_need, estimate_for
from tinyml.cost.model import find_model
from tinyml.ops.classical.tree_counts import averages
from tinyml.ops.classical.tree_stream import LEAF
from tinyml.ops.classical.trees import TreeWalk
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import work
from tinyml.pipeline import Options, compile_built, compile_model
from tinyml.verbs import cli
from tools import cost_errors, kernel_counts, layer_counts, tree_counts
from tools.kernel_layers import sketched

ROOT = Path(__file__).parents[2]
DIGITS = FLOAT.parent / "model.onnx"
CLOSE = 0.10
COUNTED = json.loads((ROOT / "benchmarks" / "record.json").read_text(encoding="utf-8"))["rows"]
CORES = sorted({row["machine"].removeprefix("qemu-") for row in COUNTED})  # others: tests/standalone
CODE_CLOSE = {"riscv32-zve32x": 0.20}
"""Clang makes vectors of the loops in a model's own C, or writes out their turns: hard to foresee."""


def counted(model: str, core: str, kernels: str = "portable") -> dict[str, int]:
    rows = [row for row in COUNTED if (row["model"], row["kernels"]) == (model, kernels)]
    return next(row for row in rows if row["machine"] == f"qemu-{core}")


@pytest.mark.parametrize("core", CORES)
def test_a_model_that_no_figure_was_fitted_to(core: str) -> None:
    """The digits sample is not among the published models."""
    found, truth = tinyml.cost(DIGITS, core), counted("digits", core)
    assert found.instructions is not None, f"{found.note}: CONTRIBUTING.md, Estimates, says how to measure"
    assert found.instructions == pytest.approx(truth["instructions"], rel=2 * CLOSE)
    code = truth["kernels_bytes"] + truth["glue_bytes"] + truth["library_bytes"]
    assert found.code_bytes == pytest.approx(code, rel=CLOSE)
    assert found.flash_bytes == pytest.approx(truth["constants_bytes"] + code, rel=CLOSE)
    assert found.arena_bytes == truth["arena_bytes"]


@pytest.mark.parametrize("core", CORES)
def test_the_error_bar_contains_what_was_counted(core: str) -> None:
    found, truth = tinyml.cost(DIGITS, core), counted("digits", core)
    assert found.instructions is not None
    assert found.instructions_error is not None
    assert 0 < found.instructions_error < DOUBTFUL
    assert abs(truth["instructions"] / found.instructions - 1) <= found.instructions_error
    assert f"within {found.instructions_error:.0%} (true of 95 % of the layers" in found.note


def test_bars_of_models() -> None:
    """Layers of one kernel and about one size add up, others are independent; unknown ones spoil it."""
    bars = ErrorBars({"a": [0.4, 0.3, 0.2, 0.1], "b": [0.4, 0.3, 0.2, 0.1]}, {"a": 9, "b": 9})
    assert bars.of_layer("a", 1_999) == 0.4
    assert bars.of_layer("a", 2_000) == 0.3
    assert bars.of_model([("a", 30_000.0), ("a", 31_000.0)]) == pytest.approx(0.2)
    assert bars.of_model([("a", 30_000.0), ("b", 30_000.0)]) == pytest.approx(0.2 / 2**0.5)
    assert bars.of_model([("a", 30_000.0), ("c", 1_000.0)]) == pytest.approx(6082.76 / 31_000)
    assert bars.of_model([("a", 30_000.0), ("c", 10_000.0)]) is None


def small_forest(path: Path) -> Path:
    attributes = forest(6, 4, "target", [0], ["BRANCH_LEQ"], n_targets=1)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], "trees", domain=ML, **attributes)
    value = helper.make_tensor_value_info
    ports = [value("x", TensorProto.FLOAT, [1, FEATURES])], [value("y", TensorProto.FLOAT, None)]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(ML, 3)]
    graph = helper.make_graph([node], "trees", *ports)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_kernels_without_a_bar_are_unknown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimates = importlib.import_module("tinyml.cost.estimate")  # `tinyml.cost` is a function as well
    monkeypatch.setattr(estimates, "find_bars", lambda target: ErrorBars({}, {}))
    path = small_forest(tmp_path / "trees.onnx")
    assert cli.main(["cost", str(path), "--target", "cortex-m4"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "instructions unknown" in shown
    assert "`tinyml cost --count` counts them" in shown
    assert "per run, estimated" not in shown


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "riscv32"])
def test_trees_have_estimates(target: str, tmp_path: Path) -> None:
    found = tinyml.cost(small_forest(tmp_path / "trees.onnx"), target)
    assert found.instructions is not None
    assert found.instructions_error is not None
    assert found.instructions_error < DOUBTFUL


def test_leaves_of_trees_are_equally_likely() -> None:
    """Leaves below one, two and two nodes; the first has two weights."""
    tables = ([0], [3, LEAF, 3, LEAF, LEAF], [0] * 5, [2, 0, 4, 1, 2], [0, 2, 3, 4])
    passed, added = averages([np.asarray(table) for table in tables])
    assert passed == pytest.approx((1 + 2 + 2) / 3)
    assert added == pytest.approx((2 + 1 + 1) / 3)


def test_every_kind_of_tree_was_counted() -> None:
    """All work that trees can have is in the figures of every core."""
    work = {name for one in tree_counts.load() for name in one.work if name.startswith("nodes")}
    for machine in layer_counts.MACHINES:
        model = find_model(harness.find_machine(machine).target.name)
        assert model is not None
        missing = work - model.instructions.loops[TreeWalk.name].keys()
        assert not missing, f"{machine}: python -m tools.tree_counts, python -m tools.fit_costs --loops"


def test_the_page_of_errors_is_current() -> None:
    assert cost_errors.PAGE.read_text(encoding="utf-8") == cost_errors.current()


@pytest.mark.parametrize("name", ["mlperf_kws_int8", "mlperf_ad_int8"])
def test_published_models(name: str, models_folder: Path) -> None:
    path = models_folder / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"no {name} in the models folder")
    found, truth = tinyml.cost(path, "cortex-m4"), counted(name, "cortex-m4")
    assert found.instructions == pytest.approx(truth["instructions"], rel=CLOSE)
    assert found.cycles == pytest.approx(truth["cycles"], rel=CLOSE)
    assert found.code_bytes == pytest.approx(
        truth["kernels_bytes"] + truth["glue_bytes"] + truth["library_bytes"], rel=CLOSE
    )


def test_the_result_has_every_layer_and_says_how_good_it_is() -> None:
    found = tinyml.cost(DIGITS, "cortex-m4")
    assert sum(layer.instructions or 0 for layer in found.layers) == pytest.approx(found.instructions, abs=9)
    assert found.note.startswith("estimated, not counted; instructions within ")
    assert found.milliseconds(100) == pytest.approx(found.cycles / 1e5)  # type: ignore[operator]
    assert "<table>" in found._repr_html_()
    assert json.loads(json.dumps(found.as_json()))["code_bytes"] == found.code_bytes
    assert tinyml.cost(tinyml.compile(DIGITS, target="cortex-m4")) == found


def test_a_core_that_was_not_measured_has_no_estimates() -> None:
    found = tinyml.cost(DIGITS, "generic")
    assert (found.instructions, found.cycles, found.code_bytes) == (None, None, None)
    assert found.note == "no costs were measured for generic"
    assert "with the figures of the cortex-m4" in tinyml.cost(DIGITS, "cortex-m33").note


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    board = ["-b", "qemu_cortex_m4", "--mhz", "120", "--kernels", "portable"]
    assert cli.main(["cost", str(DIGITS), *board, "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert "on qemu_cortex_m4: cortex-m4" in said
    assert "ms per run at 120 MHz" in said
    same = tinyml.cost(DIGITS, kernels="portable", board="qemu_cortex_m4")
    assert json.loads(file.read_text()) == json.loads(json.dumps(same.as_json()))


def test_energy_is_a_range_where_a_figure_was_published() -> None:
    """Cycles times picojoules; the Cortex-M3 has no published chip."""
    found = tinyml.cost(DIGITS, "cortex-m4")
    (energy,) = found.energies
    assert energy.chip == "STM32L4R5"
    assert found.cycles is not None
    assert energy.least_microjoules == pytest.approx(found.cycles * 323e-6)
    assert energy.least_microjoules < energy.most_microjoules
    assert energy.source
    shown = replace(energy, least_microjoules=1487.3, most_microjoules=0.3234)
    assert str(shown) == "1,490 to 0.323"
    assert energy.unit() in found._repr_html_().replace("&#x27;", "'")
    assert tinyml.cost(DIGITS, "cortex-m3").energies == ()


def test_budgets_count_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Weights of 4 KB fit 8 KB of flash; with their code they do not."""
    command = ["compile", str(DIGITS), "--target", "cortex-m3", "-o", str(tmp_path)]
    assert cli.main([*command, "--limit", "flash=8K,the board"]) == 1
    said = capsys.readouterr().err
    assert "tables and code need about" in said
    assert "the board allows 8,192" in said
    assert not list(tmp_path.iterdir())
    assert cli.main([*command, "--limit", "flash=16K"]) == 0
    report = ["report", str(DIGITS), "--kernels", "portable"]
    assert cli.main([*report, "--flash", "8k"]) == 1
    said = capsys.readouterr().out
    assert "est. code" in said
    assert "over budget: flash" in said
    assert cli.main([*report, "--flash", "16k"]) == 0


def test_work_leaves_padding_out() -> None:
    layer = next(layer for layer in tinyml.compile(DIGITS).built.graph.layers() if layer.op.kind == "Conv")
    amounts = work(layer)
    assert 0 < amounts["inside"] < amounts["macs"]


def test_names_of_functions_survive_their_subpackages() -> None:
    import tinyml.cost.estimate
    import tinyml.settings.quantize_request

    assert callable(tinyml.cost)
    assert callable(tinyml.quantize)


def test_estimates_of_published_models_are_within_ten_percent() -> None:
    """As `tools.fit_costs` found: instructions and code, on every core."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}
    assert len(found) >= 7
    worst = {core: (data["instructions"]["error"], data["code"]["error"]) for core, data in found.items()}
    assert all(0 < instructions < CLOSE for instructions, _ in worst.values()), worst
    assert all(0 < code < CODE_CLOSE.get(core, CLOSE) for core, (_, code) in worst.items()), worst


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.json")), ids=lambda path: path.parent.name + path.stem)
def test_functions_have_the_pieces_that_they_link(path: Path) -> None:
    """``select`` reads these tables: a piece that is missing there stops a compilation."""
    code = json.loads(path.read_text(encoding="utf-8")).get("code", {"pieces": [], "functions": {}})
    pieces = range(len(code["pieces"]))
    assert [name for name, linked in code["functions"].items() if not set(linked) <= set(pieces)] == []


@pytest.mark.parametrize(
    "statement,needed",
    [
        ("y[i] = x[i] / 16.0f;", set()),
        ("y[i] = x[i] / 0.25f;", set()),
        ("y[i] = x[i] / 3.0f;", {"__aeabi_fdiv"}),
        ("y[i] = x[i] / z;", {"__aeabi_fdiv"}),
        ("y[i] = x[i] - 2.0f;", {"__aeabi_fsub"}),
        ("y[i] = tinyml_expf(x[i]);", {"__aeabi_fsub", "__aeabi_fdiv"}),
    ],
)
def test_helpers_of_layers_whose_c_can_need_them(statement: str, needed: set[str]) -> None:
    tally = Tally()
    tally.statement(statement)
    assert {name for name in ("__aeabi_fsub", "__aeabi_fdiv") if _may_need(name, tally)} == needed


@pytest.mark.parametrize("core", CORES)
def test_a_model_of_which_every_kernel_is_cmsis_nns(core: str, models_folder: Path) -> None:
    """Its kernels were counted on single layers only."""
    options = Options("vww", core, "cmsis-nn", cmsis_nn=True)
    found = estimate_for(compile_model(models_folder / "mlperf_vww_int8.tflite", options))
    assert found is not None
    row = counted("mlperf_vww_int8", core, "cmsis-nn")
    assert found.instructions == pytest.approx(row["instructions"], rel=CLOSE)
    if core == "cortex-m4":
        assert found.cycles == pytest.approx(row["cycles"], rel=CLOSE)


def test_filter_banks_have_estimates() -> None:
    """Their matrices are mostly zero and have kernels of their own."""
    model = compile_built(sketched(["mel_257_to_40"]), Options(target="cortex-m4"))
    found = estimate_for(model)
    assert found is not None
    assert found.unmeasured == ()
    (truth,) = (
        one.instructions
        for one in kernel_counts.load()
        if (one.layer, one.machine) == ("mel_257_to_40", "qemu-cortex-m4")
    )
    assert found.instructions == pytest.approx(truth, rel=CLOSE)


@pytest.mark.tenth
@pytest.mark.parametrize(
    "one", layer_counts.load(), ids=lambda one: f"{one.machine} {one.model} {one.cmsis_nn}"
)
def test_models_were_counted_with_the_kernels_that_they_have(
    one: layer_counts.Counted, models_folder: Path
) -> None:
    """Otherwise no estimate of them is compared: ``python -m tools.layer_counts`` counts them again."""
    (path, *_) = [*models_folder.glob(f"{one.model}.onnx"), *models_folder.glob(f"{one.model}.tflite")]
    target = harness.find_machine(one.machine).target.name
    assert layer_counts.is_current(one, layer_counts.compiled(path, target, one.cmsis_nn))
