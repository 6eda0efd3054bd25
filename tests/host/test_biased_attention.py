# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantised attention with a bias, as T5 and Swin have it, is one layer on bytes: in every bit what its parts
compute, without a matrix of scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest

from tests.support.biased_attention import Shape, attention, samples
from tinyml import harness
from tinyml.ir import DType, Layer, Quant, Tensor
from tinyml.ir.constraints import operand_problem
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import BIAS, MASK
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import quantize
from tinyml.reference.session import answers
from tinyml.settings.quantize_request import Request
from tinyml.slots import data_pack
from tinyml.slots.families import PLAIN
from tinyml.slots.play import play_files
from tinyml.slots.version import Version
from tools.transformer_figures import compiled

FORMS = {
    "t5": Shape(24, 2, 8, scaled=False),
    "windows": Shape(16, 3, 8, windows=2),
    "shifted_windows": Shape(16, 3, 8, windows=2, shifted=True),
    "an_input": Shape(20, 2, 8, given=True),
    "odd_sizes": Shape(11, 3, 5),
    "padding": Shape(24, 2, 8, scaled=False, padded=True),
    "padding_and_an_input": Shape(13, 3, 8, given=True, padded=True),
}
COUNT = 3


def quantised(shape: Shape, folder: Path) -> onnx.ModelProto:
    onnx.save(attention(shape), folder / "real.onnx")
    np.savez(folder / "samples.npz", **samples(shape, 8))  # type: ignore[arg-type]
    return quantize(folder / "real.onnx", Request(folder / "samples.npz", method="minmax")).model


def fused(made: Compiled) -> list[Layer[AttentionInt8]]:
    found = (layer for layer in made.graph.layers() if isinstance(layer.op, AttentionInt8))
    return [cast(Layer[AttentionInt8], layer) for layer in found]


@pytest.mark.parametrize("name", FORMS)
def test_a_bias_is_added_inside(name: str, tmp_path: Path) -> None:
    shape = FORMS[name]
    model = quantised(shape, tmp_path)
    made, parts = (compiled(model.SerializeToString(), "host", apart) for apart in (False, True))
    (layer,) = fused(made)
    assert layer.input(BIAS).is_constant != shape.given
    assert layer.has_input(MASK) == (shape.shifted or shape.padded)
    scores = shape.windows * shape.heads * shape.tokens**2
    computed = [t.elements for t in made.graph.tensors.values() if not t.is_constant]
    assert computed.count(scores) == (2 if shape.given else 0)  # the bias: as it comes, and its bytes
    assert not fused(parts)
    inputs = [{word: array[i] for word, array in samples(shape, COUNT, 2).items()} for i in range(COUNT)]
    found, wanted = (
        harness.run_files(each.files, "host", inputs, options=harness.Options(sanitize=True)).outputs
        for each in (made, parts)
    )
    for given, y, apart in zip(inputs, found, wanted, strict=True):
        ((result,), (expected,)) = y.values(), apart.values()
        (reference,) = answers(model, given)
        step = float(np.min(np.diff(np.unique(reference))))
        if shape.padded:  # its weights are those of a table, not of float32 exponentials
            assert float(np.abs(result - expected).max()) < 1.01 * step
            assert np.mean(result != expected) < 0.02
        else:
            np.testing.assert_array_equal(result, expected)
        assert float(np.abs(result - reference).max()) < 1.01 * step


@pytest.mark.parametrize("name", ["t5", "shifted_windows", "an_input"])
def test_players_play_it_as_one_layer(name: str, tmp_path: Path) -> None:
    shape = FORMS[name]
    onnx.save(quantised(shape, tmp_path), tmp_path / "bytes.onnx")
    made = compile_model(tmp_path / "bytes.onnx", Options("m", "host"))
    packed = data_pack.played(tmp_path / "bytes.onnx", Options(), PLAIN, Version(1, 0, 0, 0))
    assert fused(packed.compiled)
    inputs = {word: array[0] for word, array in samples(shape, 1, 2).items()}
    (found,) = harness.run_files(play_files(packed.image.content, "host"), "host", [inputs]).outputs
    (wanted,) = harness.run_files(made.files, "host", [inputs]).outputs
    for name, expected in wanted.items():
        np.testing.assert_array_equal(found[name], expected)


def test_sums_that_need_more_than_a_step_are_refused(tmp_path: Path) -> None:
    """Scales whose ratios are round make ties, which no single step rounds as two factors do."""
    made = compiled(quantised(FORMS["t5"], tmp_path).SerializeToString(), "host")
    (layer,) = fused(made)
    round_ = [Quant.per_tensor(scale, 0) for scale in (0.7, 0.4, 1.0)]
    op = replace(layer.op, unbiased=round_[0], scaled=round_[2])
    bias = replace(layer.input(BIAS), quant=round_[1])
    tensors: list[Tensor | None] = [*layer.inputs[:BIAS], bias]
    assert bias.dtype is DType.INT8
    assert operand_problem(op, tensors) is not None
    assert operand_problem(layer.op, list(layer.inputs)) is None
