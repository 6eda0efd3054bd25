# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The quantiser's report says what it lost: random networks with outputs of several offsets and scales.

Every figure is computed here again, from the files, by other code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rich.console import Console

from tests.depth import is_deep
from tests.support.onnx_models import model, node
from tinyml.ir import Array
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import EXACT, Noise
from tinyml.quantize.report import LOST_POINTS, LOW_DECIBELS, Report
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request
from tinyml.verbs.quantize import show

pytest.importorskip("onnxruntime")

COUNT = 40 if is_deep() else 8
SAMPLES = 150
FLOAT = np.float32


def network(seed: int) -> bytes:
    """A hidden layer and one to three outputs; an offset is up to a million times what an output moves by."""
    rng = np.random.default_rng((32, seed))
    nodes = [node("Gemm", "x w a", "g"), node("Relu", "g", "h")]
    constants: dict[str, Any] = {"w": rng.normal(0, 0.4, (8, 16)).astype(FLOAT)}
    constants["a"] = rng.normal(0, 0.3, 16).astype(FLOAT)
    outputs = [f"y{index}" for index in range(int(rng.integers(1, 4)))]
    for name in outputs:
        classes, size = int(rng.integers(1, 6)), 10 ** float(rng.uniform(-2, 1))
        offset = float(rng.choice([0.0, 0.0, 10 ** float(rng.uniform(0, 4))])) * float(rng.choice([-1, 1]))
        constants[f"{name}_w"] = rng.normal(0, size, (16, classes)).astype(FLOAT)
        constants[f"{name}_b"] = np.full(classes, offset, FLOAT)
        last = str(rng.choice(["", "", "Sigmoid", "Reshape"])) if abs(offset) < 5 else ""
        nodes.append(node("Gemm", f"h {name}_w {name}_b", f"{name}_g" if last else name))
        if last == "Reshape":
            constants[f"{name}_s"] = np.array([1, classes, 1], np.int64)
            nodes.append(node("Reshape", f"{name}_g {name}_s", name))
        elif last:
            nodes.append(node(last, f"{name}_g", name))
    return model(nodes, {"x": [1, 8]}, " ".join(outputs), **constants)


def quantized(tmp_path: Path, content: bytes, io: str = "float") -> tuple[Quantized, Array]:
    (tmp_path / "m.onnx").write_bytes(content)
    x = np.random.default_rng(5).normal(0, 1, (SAMPLES, 8)).astype(FLOAT)
    np.savez(tmp_path / "c.npz", x=x)
    return quantize(tmp_path / "m.onnx", Request(tmp_path / "c.npz", io=io)), x


def answers(content: onnx.ModelProto, x: Array) -> dict[str, Array]:
    session = Session(content)
    rows = [session.run({"x": row[None]}) for row in x]
    return {name: np.stack([row[name].reshape(-1) for row in rows]).astype(np.float64) for name in rows[0]}


def claims(report: Report, before: dict[str, Array], after: dict[str, Array]) -> None:
    """All that the report says about outputs, against the outputs themselves."""
    text = "\n".join(report.advice())
    for name, wanted in before.items():
        found = after[name]
        noise = np.square(found - wanted).sum()
        moved = np.square(wanted - wanted.mean(axis=0)).sum() * SAMPLES / (SAMPLES - 1)
        decibels = 10 * np.log10(moved / noise) if noise else EXACT
        assert report.outputs[name] == pytest.approx(min(decibels, EXACT), abs=1e-3)
        assert (decibels < LOW_DECIBELS) == (f"output {name!r} has only" in text), (decibels, text)
        if wanted.shape[1] > 1:
            same = float(np.mean(wanted.argmax(axis=1) == found.argmax(axis=1)))
        else:
            same = float(np.mean((wanted > 0.5) == (found > 0.5)))
        assert report.decisions[name] == pytest.approx(same)
        warned = f"decisions of the output {name!r} change" in text
        assert warned == (100 * (1 - same) > LOST_POINTS and round((1 - same) * SAMPLES) >= 2), (same, text)
    assert report.decibels == min(report.outputs.values())
    assert report.agreement == min(report.decisions.values())


@pytest.mark.tenth
@pytest.mark.parametrize("seed", range(COUNT))
def test_report_of_a_random_network(seed: int, tmp_path: Path) -> None:
    content = network(seed)
    result, x = quantized(tmp_path, content)
    before, after = answers(onnx.load_from_string(content), x), answers(result.model, x)
    claims(result.report, before, after)
    assert result.report.decibels > LOW_DECIBELS, "sums of integers keep the resolution of every output"
    kept = Report.from_json({k: v for k, v in result.report.as_json().items() if k != "model_sha256"})
    assert kept.decisions == result.report.decisions


def test_every_layer_has_a_share_of_the_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one too; and long names stay whole in a pipe, as do reasons."""
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest's workers have it
    rng = np.random.default_rng(2)
    long = "encoder/" + "block/" * 20 + "dense"
    nodes = [
        node("Gemm", "x w a", long),
        node("LayerNormalization", f"{long} s", "norm"),
        node("Gemm", "norm v", "last"),
    ]
    constants: dict[str, Any] = {
        "w": rng.normal(0, 0.4, (8, 16)).astype(FLOAT),
        "a": rng.normal(0, 0.3, 16).astype(FLOAT),
        "s": np.ones(16, FLOAT),
        "v": rng.normal(0, 0.4, (16, 3)).astype(FLOAT),
    }
    result, _ = quantized(tmp_path, model(nodes, {"x": [1, 8]}, "last", **constants))
    layers = {layer.name: layer for layer in result.report.layers}
    assert [*layers] == [long, "norm", "last"]
    assert (layers["norm"].kind, layers["norm"].why) == (
        "float",
        "there is no integer form of LayerNormalization",
    )
    assert sum(layer.share or 0 for layer in layers.values()) == pytest.approx(1)
    assert (layers[long].share or 0) > 0
    show(result.report, Console(file=sys.stdout, width=80))
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(long) for line in lines)
    assert any("norm" in line and line.rstrip().endswith("LayerNormalization") for line in lines)


def offsets() -> bytes:
    rng = np.random.default_rng(0)
    nodes = [
        node("Gemm", "x w", "g"),
        node("Relu", "g", "h"),
        node("Gemm", "h v b", "y"),
        node("Gemm", "h u c", "z"),
    ]
    return model(nodes, {"x": [1, 8]}, "y z", w=rng.normal(0, 0.4, (8, 16)).astype(FLOAT),
                 v=rng.normal(0, 0.3, (16, 5)).astype(FLOAT), b=np.full(5, 1000, FLOAT),
                 u=rng.normal(0, 0.02, (16, 3)).astype(FLOAT), c=np.full(3, 50, FLOAT))  # fmt: skip


def test_outputs_with_an_offset_keep_their_resolution(tmp_path: Path) -> None:
    result, x = quantized(tmp_path, offsets())
    assert min(result.report.outputs.values()) > 30
    assert not result.report.advice()
    values = answers(result.model, x)["z"]
    assert len(np.unique(values)) > SAMPLES, "not a handful of steps"


def test_int8_outputs_with_an_offset_are_reported(tmp_path: Path) -> None:
    """The interface of integers leaves no choice; the report says what that costs."""
    result, _ = quantized(tmp_path, offsets(), io="int8")
    text = "\n".join(result.report.advice())
    for name in ("y", "z"):
        assert result.report.outputs[name] < LOW_DECIBELS
        assert f"the output {name!r} has only" in text
        assert f"decisions of the output {name!r} change" in text
    assert "--io float" in text


def test_the_mean_is_no_signal() -> None:
    rng = np.random.default_rng(1)
    plain, shifted = Noise(), Noise()
    for _ in range(50):
        values = rng.normal(0, 1, 6)
        error = rng.normal(0, 0.1, 6)
        plain.add(values, values + error)
        shifted.add(values + 1000, values + 1000 + error)
    assert plain.decibels == pytest.approx(20, abs=1)
    assert shifted.decibels == pytest.approx(plain.decibels, abs=1e-6)


def test_a_single_sample_or_a_constant_has_its_energy() -> None:
    one = Noise()
    one.add(np.array([3.0, 4.0]), np.array([3.0, 4.5]))
    assert one.decibels == pytest.approx(20)
    constant = Noise()
    for _ in range(3):
        constant.add(np.array([10.0]), np.array([10.1]))
    assert constant.decibels == pytest.approx(40)


def test_values_that_are_not_finite_are_no_signal() -> None:
    meter = Noise()
    for value in (1.0, np.inf, 3.0):
        meter.add(np.array([value]), np.array([value]))
    assert meter.decibels == EXACT
    assert meter.signal == pytest.approx(4)  # 1 and 3 around 2, by n - 1


def unrolled(steps: int) -> bytes:
    """A recurrent layer that is none of ONNX's, step by step: each has the same weights."""
    rng = np.random.default_rng(3)
    constants: dict[str, Any] = {f"w{gate}": rng.normal(0, 0.5, (4, 10)).astype(FLOAT) for gate in "zh"}
    constants |= {f"b{gate}": rng.normal(0, 0.5, 10).astype(FLOAT) for gate in "zh"}
    constants |= {"h0": np.zeros((1, 10), FLOAT), "one": np.asarray(1, FLOAT)}
    nodes = []
    for step in range(steps):
        constants |= {f"i{step}": np.array([step], np.int64), f"i{step + 1}": np.array([step + 1], np.int64)}
        nodes += [
            node("Slice", f"x i{step} i{step + 1} i0", f"x{step}"),
            node("Gemm", f"x{step} wz bz", f"a{step}"),
            node("Sigmoid", f"a{step}", f"z{step}"),
            node("Gemm", f"x{step} wh bh", f"n{step}"),
            node("Sub", f"one z{step}", f"k{step}"),
            node("Mul", f"k{step} h{step}", f"o{step}"),
            node("Mul", f"z{step} n{step}", f"p{step}"),
            node("Add", f"o{step} p{step}", f"h{step + 1}"),
        ]
    return model(nodes, {"x": [steps, 4]}, f"h{steps}", **constants)


def test_constants_that_grow_have_a_warning(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(unrolled(16))
    np.savez(tmp_path / "c.npz", x=np.random.default_rng(5).normal(0, 1, (20, 16, 4)).astype(FLOAT))
    report = quantize(tmp_path / "m.onnx", Request(tmp_path / "c.npz", method="minmax")).report
    (line,) = (line for line in report.advice() if line.startswith("constants grow"))
    assert f"from {report.float_bytes:,} to {report.int8_bytes:,} bytes" in line
    assert "Each step of an unrolled loop is such a layer" in line
