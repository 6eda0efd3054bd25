# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders with caches of bytes: the C computes what onnxruntime computes from the int8 file, run by run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

import tinyml
from tests.depth import is_deep
from tests.support import decoders, growing_decoders
from tests.support.decoders import STATES
from tests.support.growing_decoders import Growing
from tinyml import harness
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.ir import Array
from tinyml.ir import Shape as Extents
from tinyml.ir.interpreter import interpret
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import POSITION
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import quantize
from tinyml.quantize.measure import Noise
from tinyml.settings.quantize_request import Request
from tinyml.verbs import cli

RANDOM = 12 if is_deep() else 2
TEXTS = 17  # first tokens see one value alone, the largest results: few texts have too few of them
Sample = Mapping[str, Array]


def written(texts: list[list[dict[str, Array]]], folder: Path) -> Path:
    names = texts[0][0]
    table = {name: np.stack([[run[name] for run in text] for text in texts]) for name in names}
    np.savez(folder / "texts.npz", **table)  # type: ignore[arg-type]
    return folder / "texts.npz"


def quantized(
    path: Path, texts: list[list[dict[str, Array]]], shapes: Mapping[str, Extents] | None = None
) -> tuple[Path, Compiled]:
    """The int8 file, calibrated on all texts but the last, and the model that is compiled from it."""
    result = quantize(path, Request(written(texts[:-1], path.parent)), shapes)
    int8 = path.with_name("int8.onnx")
    onnx.save(result.model, int8)
    return int8, compile_model(int8, Options("net", "host"))


def check(int8: Path, made: Compiled, text: list[dict[str, Array]], real: list[Array], output: str) -> float:
    """C equals numpy and onnxruntime to the last bit; returns decibels against the float model."""
    found = [values[output] for values in harness.run_files(made.files, "host", text).outputs]
    theirs = OnnxRuntime(read_model(int8), load(int8)).run(text)
    noise = Noise()
    for ours, values, answer, exact in zip(found, interpret(made.graph, text), theirs, real, strict=True):
        np.testing.assert_array_equal(ours, values[output])
        np.testing.assert_array_equal(ours, answer.outputs[0])
        noise.add(exact, ours)
    return noise.decibels


def cached(made: Compiled) -> list[str]:
    tensors = [made.graph.tensors[state.tensor] for state in made.graph.states]
    return [tensor.dtype.value for tensor in tensors if len(tensor.shape) > 1]


def attention_of(made: Compiled) -> list[AttentionInt8]:
    nodes = [node for node in made.graph.nodes if isinstance(node.op, AttentionInt8)]
    assert all(len(node.inputs) == POSITION + 1 for node in nodes)
    return [node.op for node in nodes if isinstance(node.op, AttentionInt8)]


def texts_of(shape: decoders.Shape, random: np.random.Generator) -> list[list[dict[str, Array]]]:
    runs = shape.longest // shape.steps
    return [
        [
            {
                "x": random.normal(size=(1, shape.steps, shape.width)).astype(np.float32),
                "position": np.array([run * shape.steps]),
            }
            for run in range(runs)
        ]
        for _ in range(TEXTS)
    ]


@pytest.mark.parametrize(
    "form,steps",
    [
        ("grouped", 1),
        ("standard", 1),
        ("standard", 3),
        ("elements", 1),
        ("elements", 3),
        ("places", 1),
        ("where", 1),
    ],
)
def test_a_cache_of_bytes(form: str, steps: int, tmp_path: Path) -> None:
    shape = decoders.Shape(form, groups=2, many=2, size=16, longest=24, steps=steps, rotary=True)
    path = tmp_path / "decoder.onnx"
    onnx.save(decoders.model(shape, 1), path)
    texts = texts_of(shape, np.random.default_rng(1))
    int8, made = quantized(path, texts)
    real = [answer.outputs[0] for answer in OnnxRuntime(read_model(path), load(path)).run(texts[-1])]
    assert check(int8, made, texts[-1], real, "y") > 22
    assert cached(made) == ["int8"] * len(STATES)
    assert len(attention_of(made)) == 1
    assert made.plan.arena_bytes < shape.groups * shape.longest * shape.size  # no second cache


def growing(shape: Growing, seed: int, folder: Path) -> tuple[Compiled, float]:
    file = growing_decoders.model(shape, seed)
    path = folder / "grows.onnx"
    onnx.save(file, path)
    random = np.random.default_rng(seed)
    tokens = [growing_decoders.texts(shape, random) for _ in range(TEXTS)]
    texts = [growing_decoders.samples(shape, text) for text in tokens]
    past = (1, shape.groups, shape.longest, shape.size)
    int8, made = quantized(path, texts, {"past_key_values.0.key": past, "input_ids": (1, shape.steps)})
    real = growing_decoders.by_onnxruntime(file, shape, tokens[-1])
    return made, check(int8, made, texts[-1], real, "logits")


@pytest.mark.parametrize(
    "shape",
    [
        Growing("llama", layers=2, groups=2, many=2, size=8, longest=16),
        Growing("gpt2", layers=2, groups=2, many=1, size=8, longest=16, positions=False),
        Growing("gpt2", layers=1, groups=2, many=1, size=8, longest=16, steps=2),
        Growing("sdpa", layers=2, groups=2, many=2, size=8, longest=16, mask=False),
    ],
    ids=lambda shape: f"{shape.style}-{shape.steps}",
)
def test_a_growing_past_becomes_a_cache_of_bytes(shape: Growing, tmp_path: Path) -> None:
    made, decibels = growing(shape, 1, tmp_path)
    assert decibels > 28
    assert cached(made) == ["int8"] * len(shape.pasts)
    assert len(attention_of(made)) == shape.layers


@pytest.mark.parametrize("number", range(RANDOM))
def test_random_decoders(number: int, tmp_path: Path) -> None:
    shape = growing_decoders.draw(np.random.default_rng([41, number]))
    made, decibels = growing(shape, number, tmp_path)
    assert decibels > 15
    assert set(cached(made)) == {"int8"}


def test_positions_outside_write_and_read_inside(tmp_path: Path) -> None:
    """Under sanitizers; the C and numpy agree on what is limited."""
    shape = decoders.Shape("elements", groups=1, many=2, size=8, longest=8)
    path = tmp_path / "decoder.onnx"
    onnx.save(decoders.model(shape, 3), path)
    random = np.random.default_rng(3)
    _, made = quantized(path, texts_of(shape, random))
    far = (8, -1, 2**31 - 1, -(2**31), 2**40, -(2**40), 2**62, -(2**62), 2**32 + 1, 7, 6, 9)
    runs: list[dict[str, Array]] = [
        {"x": random.normal(size=(1, 1, shape.width)).astype(np.float32), "position": np.array([place])}
        for place in far
    ]
    found = harness.run_files(made.files, "host", runs).outputs
    for ours, values in zip(found, interpret(made.graph, runs), strict=True):
        np.testing.assert_array_equal(ours["y"], values["y"])


def test_quantised_while_it_is_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bound is that of the float file; the int8 file has caches."""
    shape = Growing("llama", layers=1, groups=1, many=2, size=8, longest=12)
    path = tmp_path / "grows.onnx"
    onnx.save(growing_decoders.model(shape, 5), path)
    random = np.random.default_rng(5)
    texts = [growing_decoders.samples(shape, growing_decoders.texts(shape, random)) for _ in range(TEXTS)]
    calibration = written(texts, tmp_path)
    arguments = ["--bound", "past_sequence_length=12", "--quantize", str(calibration)]
    assert cli.main(["verify", str(path), *arguments]) == 0
    assert "agrees on host" in capsys.readouterr().out


def test_the_command_takes_the_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--bound` gives the file that `--shape` gives, as does the parameter in Python."""
    shape = Growing("llama", layers=1, groups=1, many=2, size=8, longest=12)
    path = tmp_path / "grows.onnx"
    onnx.save(growing_decoders.model(shape, 5), path)
    random = np.random.default_rng(5)
    texts = [growing_decoders.samples(shape, growing_decoders.texts(shape, random)) for _ in range(4)]
    data = written(texts, tmp_path)
    command = ["quantize", str(path), "--calibration", str(data), "--method", "minmax"]
    lengths = {"bound": ["--bound", "past_sequence_length=12"]}
    lengths["shape"] = ["--shape", "past_key_values.0.key=1x1x12x8"]
    for name, words in lengths.items():
        assert cli.main([*command, "-o", str(tmp_path / f"{name}.onnx"), *words]) == 0
    made = tinyml.quantize(path, data, method="minmax", bounds={"past_sequence_length": 12})
    found = {made.content, *((tmp_path / f"{name}.onnx").read_bytes() for name in lengths)}
    assert len(found) == 1
    assert cached(compile_model(tmp_path / "bound.onnx", Options("net", "host"))) == ["int8"] * 2
    capsys.readouterr()
    assert cli.main([*command, "-o", str(tmp_path / "no.onnx"), *lengths["bound"], "--bound", "Other=3"]) == 1
    assert "Other: not the length of a cache that grows" in " ".join(capsys.readouterr().err.split())
