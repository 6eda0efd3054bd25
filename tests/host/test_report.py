# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The report: its figures, its JSON, its page. What it costs on a core is in tests/standalone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.small_models import CONV, WEIGHTS, model_of
from tinyml.base.errors import ConfigError
from tinyml.pipeline import Options
from tinyml.report import changes, comparison, facts, html, layer_table, palette
from tinyml.report.collect import collect
from tinyml.report.facts import Report
from tinyml.report.flash_svg import flash_svg
from tinyml.settings.quantize_request import Request
from tinyml.verbs.cli import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(DIGITS, Options(name="digits", kernels="portable"))


def test_tensors_fit_the_arena_and_reach_its_top(report: Report) -> None:
    ends = [tensor.offset + tensor.bytes for tensor in report.tensors]
    ends += [layer.scratch_offset + layer.scratch_bytes for layer in report.layers if layer.scratch_offset]
    assert max(ends) == report.arena_bytes
    assert all(0 <= tensor.first <= tensor.last <= len(report.layers) for tensor in report.tensors)


def test_no_two_tensors_of_one_moment_overlap_unless_shared(report: Report) -> None:
    """What the picture shows is a plan: overlaps are only those of sharing, where lifetimes touch."""
    for i, a in enumerate(report.tensors):
        for b in report.tensors[i + 1 :]:
            together = min(a.last, b.last) - max(a.first, b.first)
            apart = a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
            assert apart or together <= 0


def test_peak_is_where_most_is_live(report: Report) -> None:
    live = [layer.live_bytes for layer in report.layers]
    assert live[report.peak_step] == max(live) == report.arena_lower_bound_bytes


def test_passes_are_shown(report: Report) -> None:
    assert report.stages[0].name == "import"
    assert report.stages[-1].layers == len(report.layers)
    assert len(report.stages) > 2


def test_json_survives(report: Report, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(report.to_json())
    assert facts.load(tmp_path / "r.json") == report


def test_newer_fields_are_passed_over(report: Report, tmp_path: Path) -> None:
    data = json.loads(report.to_json())
    data["surprise"] = data["layers"][0]["surprise"] = 1
    (tmp_path / "r.json").write_text(json.dumps(data))
    assert facts.load(tmp_path / "r.json") == report


def test_older_reports_are_read(report: Report, tmp_path: Path) -> None:
    data = json.loads(report.to_json())
    for layer in data["layers"]:
        del layer["label"]  # added after the first version
    (tmp_path / "r.json").write_text(json.dumps(data))
    assert facts.load(tmp_path / "r.json").layers[0].label == ""


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 99}', "[]"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ConfigError):
        facts.load(tmp_path / "r.json")


def test_schema_is_stable(report: Report) -> None:
    """Names that programs may rely on. Adding is fine; for anything else, raise SCHEMA."""
    data = json.loads(report.to_json())
    assert data["schema"] == 1
    assert {"model", "target", "arena_bytes", "arena_lower_bound_bytes", "weights_bytes", "layers"} <= set(
        data
    )
    assert {"step", "name", "op", "kernel", "macs", "weights_bytes", "live_bytes"} <= set(data["layers"][0])
    assert {"name", "offset", "bytes", "first", "last"} <= set(data["tensors"][0])


def test_changes(report: Report) -> None:
    assert list(changes.changes(report, report)) == []
    other = replace(report.layers[-1], kernel="another")
    new = replace(report, arena_bytes=report.arena_bytes * 2, layers=[*report.layers[1:-1], other])
    found = {item.what: item for item in changes.changes(report, new)}
    assert (found["arena bytes"].difference, found["arena bytes"].better) == ("+100.0%", False)
    assert found["layers"].better is True
    gone, kept = report.layers[0], report.layers[-1]
    assert found[f"layer {gone.op} {gone.name}"].after == "gone"
    assert found[f"layer {kept.op} {kept.name}"].after == "another"


def test_pictures_are_well_formed(report: Report) -> None:
    page = html.page(report)
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    memory, _, flash, _, graph = pictures  # the second ones are for phones
    blocks = [element for element in memory.iter("rect") if element.get("class") == "tensor"]
    assert len(blocks) == len(report.tensors)
    assert len([element for element in memory.iter("rect") if element.get("class") == "peak"]) == 1
    areas = {
        float(rect.get("width", 0)) * float(rect.get("height", 0)) / layer.weights_bytes
        for part in flash.iter("g")
        for rect in part.iter("rect")
        for layer in report.layers
        if part.get("data-layer") == str(layer.step)
    }
    assert max(areas) < 1.02 * min(areas), "areas are in proportion to bytes"
    assert len(list(graph.iter("g"))) == len(report.layers) + 2  # and the inputs and outputs
    edges = [element for element in graph.iter("path") if element.get("class") == "edge"]
    assert len(edges) == len(report.layers) + 1  # a chain


def test_the_graph_names_attributes_and_weights(report: Report) -> None:
    """What Netron shows of a node; values that say nothing are left out."""
    (graph,) = re.findall(r'<svg[^>]*class="graph".*?</svg>', html.page(report), re.DOTALL)
    conv = next(
        layer for layer in report.layers if layer.op == "Conv" and layer.attributes["pads"] == "1x1x1x1"
    )
    weights = next(one for one in conv.operands if one.role == "constant")
    (node,) = re.findall(rf'<g [^>]*data-layer="{conv.step}".*?</g>', graph, re.DOTALL)
    assert "x".join(map(str, weights.shape)) in node
    assert "pads 1x1x1x1" in node
    assert "dilations 1x1" not in node
    assert "False" not in node
    facts_shown = dict(layer_table.details(report)[conv.step][1])
    assert facts_shown["pads"] == "1x1x1x1"


def test_the_graph_rounds_numbers(report: Report) -> None:
    conv = next(index for index, layer in enumerate(report.layers) if layer.op == "Conv")
    attributes = {**report.layers[conv].attributes, "epsilon": "9.999999747378752e-06", "name": "e.g"}
    changed = replace(report.layers[conv], attributes=attributes)
    page = html.page(replace(report, layers=[*report.layers[:conv], changed, *report.layers[conv + 1 :]]))
    (graph,) = re.findall(r'<svg[^>]*class="graph".*?</svg>', page, re.DOTALL)
    assert "epsilon 1e-05, name e.g" in graph


def test_flash_lies_together_by_kind(report: Report) -> None:
    """Layers of one kind fill one rectangle, without a gap."""
    layers = report.layers[:4]
    mixed = [
        replace(layer, step=step, label=("conv", "dense")[step % 2], weights_bytes=1000 + step)
        for step, layer in enumerate(layers)
    ]
    drawn = flash_svg(replace(report, layers=mixed))
    for kind in (0, 1):
        boxes = [
            tuple(float(value) for value in found)
            for step in (kind, kind + 2)
            for found in re.findall(
                rf'data-layer="{step}".*?x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"',
                drawn.replace("\n", " "),
            )[:1]
        ]
        left, top = min(x for x, *_ in boxes), min(y for _, y, *_ in boxes)
        right, bottom = max(x + w for x, _, w, _ in boxes), max(y + h for _, y, _, h in boxes)
        filled = sum(w * h for *_, w, h in boxes)
        assert filled == pytest.approx((right - left) * (bottom - top), rel=0.02)


def test_page_is_self_contained(report: Report) -> None:
    page = html.page(replace(report, model="<b>&</b>"))
    assert "<b>&</b>" not in page
    assert not re.search(r"(src|href)=|url\((?!#)|@import|https?:", page)
    assert "default-src 'none'" in page


def test_colours_are_those_of_every_report(report: Report) -> None:
    others = [replace(layer, label=f"other{layer.step}") for layer in report.layers[:-1]]
    rare = replace(report, layers=[*others, replace(report.layers[-1], label="conv")])
    fill = f'style="fill:{palette.color("conv")}"'
    assert fill in html.page(rare)
    assert fill in html.page(report)
    assert len(set(map(palette.color, palette.FREQUENT))) == len(palette.FREQUENT)


def test_layers_have_their_c_and_their_scales(report: Report) -> None:
    conv = next(layer for layer in report.layers if layer.label == "conv")
    assert conv.code.startswith(f"/* {conv.step}: conv")
    assert conv.code.endswith("}")
    assert html.page(report).count("static void ") == sum(not layer.free for layer in report.layers)
    weights = next(operand for operand in conv.operands if operand.role == "constant" and operand.channels)
    assert 0 < weights.scales[0] < weights.scales[1]
    output = next(operand for operand in conv.operands if operand.role == "output")
    assert (len(output.scales), len(output.zero_points)) == (1, 1)


def test_layers_of_a_model_quantised_here_have_their_noise(tmp_path: Path) -> None:
    small = model_of([CONV, helper.make_node("Relu", ["c"], ["y"], "relu")], {"w": WEIGHTS}, [1, 3, 8, 8])
    onnx.save(small, tmp_path / "small.onnx")
    np.save(tmp_path / "data.npy", np.random.default_rng(1).uniform(-1, 1, (8, 3, 8, 8)).astype(np.float32))
    found = collect(
        tmp_path / "small.onnx", Options(quantize=Request(tmp_path / "data.npy", method="minmax"))
    )
    assert found.accuracy[0].startswith("Quantised: ")
    assert any(layer.snr_db and layer.snr_db > 20 for layer in found.layers)
    assert "SNR in dB" in html.page(found)


def test_several_reports_side_by_side(report: Report, tmp_path: Path) -> None:
    larger = replace(report, arena_bytes=report.arena_bytes * 2)
    compared = comparison.compare([("first", larger), ("second", report)], report)
    assert compared is not None
    assert compared.names == ["first", "second", "this report"]
    arena = next(row for row in compared.totals if row.what == "arena bytes")
    assert [(cell.difference, cell.better) for cell in arena.cells] == [
        ("", False),
        ("-50.0%", True),
        ("-50.0%", True),
    ]
    assert [len(changed) for _, changed in compared.changes] == [1, 0]
    assert "What changed since second" in html.page(report, [("first", larger), ("second", report)])


def test_accuracy_of_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, page = tmp_path / "evaluation.json", tmp_path / "r.html"
    np.savez(tmp_path / "data.npz", x=np.zeros((4, 1, 8, 8), np.float32), labels=np.zeros(4, np.int64))
    data = str(tmp_path / "data.npz")
    assert main(["evaluate", str(DIGITS), "--data", data, "--json", str(found)]) == 0
    assert main(["report", str(DIGITS), "--evaluation", str(found), "--html", str(page)]) == 0
    assert re.search(r"Accuracy [0-9.]+% on 4 samples", capsys.readouterr().out)
    assert re.search(r"<li>Accuracy [0-9.]+% on 4 samples", page.read_text())
    (tmp_path / "other.json").write_text("{}")
    assert main(["report", str(DIGITS), "--evaluation", str(tmp_path / "other.json")]) == 1


def test_loss_of_a_quantisation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model, loss, found = (tmp_path / name for name in ("data.npz", "int8.onnx", "loss.json", "r.json"))
    np.savez(data, x=np.random.default_rng(0).random((8, 1, 8, 8), np.float32))
    float_model = DIGITS.with_name("model_float.onnx")
    quantize = ["quantize", str(float_model), "--calibration", str(data), "-o", str(model)]
    assert main([*quantize, "--report", str(loss)]) == 0
    assert main(["report", str(model), "--quantization", str(loss), "--json", str(found)]) == 0
    report = facts.load(found)
    weighted = [layer for layer in report.layers if layer.macs]
    wanted = {layer["name"]: layer["decibels"] for layer in json.loads(loss.read_text())["layers"]}
    assert len(weighted) == 3
    assert [layer.snr_db for layer in weighted] == [wanted[layer.name] for layer in weighted]
    bars = [
        cell.percent
        for _, cells in layer_table.rows(report)
        for column, cell in cells
        if column.title == "SNR in dB" and cell.text
    ]
    assert len(bars) >= 3
    assert max(bar or 0 for bar in bars) == 100
    assert all(bar is not None and 0 <= bar <= 100 for bar in bars)
    assert report.accuracy[0].startswith("Quantised: ")
    capsys.readouterr()
    loss.write_text("[]")
    assert main(["report", str(model), "--quantization", str(loss)]) == 1
    assert "is not the report of a quantisation" in capsys.readouterr().err
    gone = tmp_path / "gone.json"
    assert main(["report", str(model), "--quantization", str(gone)]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old.json"
    page = tmp_path / "r.html"
    model = [str(DIGITS), "--name", "digits", "--kernels", "portable"]
    assert main(["report", *model, "--json", str(old), "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "what the passes did" in printed
    assert f"{json.loads(old.read_text())['arena_bytes']:,}" in printed
    assert page.read_text().startswith("<!doctype html>")
    assert main(["report", *model, "--against", str(old)]) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert main(["report", *model, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(old.read_text())


def test_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(DIGITS), "--ram", "64k", "--flash", "1M"]) == 0
    assert main(["report", str(DIGITS), "--ram", "1k"]) == 1
    said = capsys.readouterr().out
    assert "over budget: RAM" in said
    assert re.search(r"try: `--\w+ [\w,]+` \([\d,]+ bytes", said), said
    with pytest.raises(SystemExit):
        main(["report", str(DIGITS), "--ram", "much"])


def test_the_budget_of_the_application(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline that asks for a model of an application expects the limits that the build has."""
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr REQUIRED)\n")
    (tmp_path / "model.onnx").write_bytes(DIGITS.read_bytes())
    words = ["report", "digits", "--app", str(tmp_path)]

    def allow(budget: str) -> None:
        text = f"models:\n- name: digits\n  file: model.onnx\n  budget: {{{budget}}}\n"
        (tmp_path / "tinyml.yaml").write_text(text)

    allow("ram: 1K")
    assert main(words) == 1
    said = capsys.readouterr().out
    assert re.search(r"over budget: RAM: [\d,]+ bytes of 1,024", said)
    assert re.search(r"try: `\w+: [\w,]+` \([\d,]+ bytes", said), "a line for tinyml.yaml"
    assert main([*words, "--ram", "64k"]) == 0, "the command line takes precedence"
    allow("ram: 64K, flash: 1M")
    assert main(words) == 0
    assert main(["run", *words[1:]]) == 0, "all commands that take a model take its name"
    assert main([*words, "-b", "nrf52840dk/nrf52840"]) == 0
    capsys.readouterr()
    for budget, said in (("arena: 1K", "the arena needs"), ("instructions: 1", "a run can take")):
        allow(budget)
        assert main(words) == 1
        assert f"digits: {said}" in (printed := capsys.readouterr().err)
        assert "the budget of digits allows 1" in printed


def test_builds_leave_a_report(tmp_path: Path) -> None:
    """As the build systems call it: the report is next to the C and can be compared with the next one."""
    assert main(["compile", str(DIGITS), "--name", "digits", "-o", str(tmp_path), "--report"]) == 0
    assert (tmp_path / "digits_report.html").read_text().startswith("<!doctype html>")
    written = facts.load(tmp_path / "digits_report.json")
    assert written.stages[0].name == "import"
    assert written.arena_bytes == json.loads((tmp_path / "digits.json").read_text())["arena_bytes"]


def test_markdown_for_a_comment(tmp_path: Path) -> None:
    old, summary = tmp_path / "old.json", tmp_path / "report.md"
    model = str(DIGITS)
    assert main(["report", model, "--target", "cortex-m4", "--json", str(old)]) == 0
    assert (
        main(["report", model, "--target", "cortex-m4", "--against", str(old), "--markdown", str(summary)])
        == 0
    )
    text = summary.read_text()
    assert text.startswith("### model for cortex-m4\n")
    assert "| RAM | " in text
    assert text.endswith("Nothing changed.\n")
    words = ["report", model, "--target", "cortex-m3", "--ram", "100", "--against", str(old)]
    assert main([*words, "--markdown", str(summary)]) == 1
    text = summary.read_text()
    assert "% of 100 |" in text
    assert "**Over budget:** " in text
    assert "| layer Conv conv1 | tinyml\\_conv\\_pairs\\_s8 | tinyml\\_conv\\_halves\\_s8 | kernel |" in text


def test_one_page_for_somebody_who_decides(tmp_path: Path) -> None:
    """With calibration data, float and int8 stand side by side, with bars as long as the figures say."""
    data, page = tmp_path / "cal.npz", tmp_path / "page.html"
    np.savez(data, x=np.random.default_rng(0).random((8, 1, 8, 8), np.float32))
    model = Path(__file__).parents[2] / "samples" / "digits" / "model_float.onnx"
    words = ["report", str(model), "-b", "nrf52840dk", "--quantize", str(data), "--summary", str(page)]
    assert main([*words, "--json", str(tmp_path / "int8.json")]) == 0
    assert main(["report", str(model), "-b", "nrf52840dk", "--json", str(tmp_path / "float.json")]) == 0
    text = page.read_text()
    assert "<th>float</th><th>int8</th>" in text
    before, after = (facts.load(tmp_path / f"{kind}.json") for kind in ("float", "int8"))
    for report in (before, after):
        assert f">{report.ram_bytes:,} bytes<" in text
        assert f">{report.flash_bytes:,} bytes<" in text
        assert f">{report.milliseconds:,.2f} ms<" in text
    assert f'style="width: {100 * after.ram_bytes / before.ram_bytes:.1f}%"' in text
    assert "It fits: less than 1% of the RAM" in text or "It fits: 1% of the RAM" in text
    assert "of decisions unchanged" in text
