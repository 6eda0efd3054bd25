# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights that are float16 numbers in the file stay so in flash, whatever tool wrote the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.support.onnx_models import model, node
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import harness
from tinyml.ir import Array
from tinyml.ops.weighted.float16_weights import are_float16
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.reference.session import answers

RNG = np.random.default_rng(8)
SHAPE = (1, 3, 6, 6)


def halves(*shape: int) -> Array:
    return RNG.normal(0, 0.3, shape).astype(np.float16)


def cast_model(**more: Any) -> bytes:
    """A network whose float16 initialisers are cast to float."""
    nodes = [
        *(node("Cast", f"{name}16", name, to=TensorProto.FLOAT) for name in ("w", "d", "m")),
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("Conv", "r d", "e", group=16),
        node("GlobalAveragePool", "e", "g"),
        node("Flatten", "g", "f"),
        node("MatMul", "f m", "y"),
    ]
    constants: dict[str, Any] = {
        "w16": halves(16, 3, 3, 3),
        "d16": halves(16, 1, 3, 3),
        "m16": halves(16, 20),
        "b": RNG.normal(0, 1, 16).astype(np.float32),
    }
    return model(nodes, {"x": SHAPE}, "y", **constants, **more)


def compiled(tmp_path: Path, content: bytes, name: str = "m.onnx", **options: Any) -> Compiled:
    (tmp_path / name).write_bytes(content)
    return compile_model(tmp_path / name, Options("m", **{"target": "host", **options}))


def kernels(found: Compiled) -> list[str]:
    return [one.kernel.name for one in found.selected if "f32" in one.kernel.name]


KERNELS = ["tinyml_conv_f32_f16", "tinyml_depthwise_conv_f32_f16", "tinyml_dense_f32_f16"]


def test_onnx_with_cast_initialisers(tmp_path: Path) -> None:
    """The results are those of onnxruntime, up to the order of its sums, and of float weights exactly."""
    content = cast_model()
    x = RNG.normal(0, 1, SHAPE).astype(np.float32)
    found = compiled(tmp_path, content)
    assert kernels(found) == KERNELS
    (ours,) = harness.run_files(found.files, "host", [{"x": x}]).outputs
    plain = compiled(tmp_path, content, optimize="speed")
    assert kernels(plain) == [name.removesuffix("_f16") for name in KERNELS]
    (floats,) = harness.run_files(plain.files, "host", [{"x": x}]).outputs
    np.testing.assert_array_equal(ours["y"], floats["y"])
    (wanted,) = answers(onnx.load_from_string(content), {"x": x})
    np.testing.assert_allclose(ours["y"], wanted, rtol=1e-4, atol=1e-5)


def test_flash_halves(tmp_path: Path) -> None:
    content = cast_model()
    sizes = [
        compiled(tmp_path, content, optimize=goal).summary["weights_bytes"] for goal in ("balanced", "speed")
    ]
    weights = 16 * 27 + 16 * 9 + 16 * 20
    assert sizes[1] - sizes[0] == 2 * weights


def test_models_that_are_float16_throughout(tmp_path: Path) -> None:
    """Their arithmetic is that of float32; weights and inputs are float16 in the file."""
    content = model(
        [node("MatMul", "x m", "y")],
        {"x": (2, 32)},
        "y",
        types={"x": TensorProto.FLOAT16},
        m=halves(32, 20),
    )
    assert kernels(compiled(tmp_path, content)) == ["tinyml_dense_f32_f16"]


def test_tflite_float16_quantisation(tmp_path: Path) -> None:
    """What the TFLite converter writes: float16 constants, each with a DEQUANTIZE."""
    weights = halves(20, 48)
    values = [
        Value("x", (2, 48)),
        Value.constant("half", weights),
        Value("w", (20, 48)),
        Value("y", (2, 20)),
    ]
    calls = [
        Call("DEQUANTIZE", ["half"], ["w"], "DequantizeOptions"),
        Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions"),
    ]
    found = compiled(tmp_path, write(Part(values, calls, ["x"], ["y"])), "m.tflite")
    assert kernels(found) == ["tinyml_dense_f32_f16"]
    x = RNG.normal(0, 1, (2, 48)).astype(np.float32)
    (ours,) = harness.run_files(found.files, "host", [{"x": x}]).outputs
    np.testing.assert_allclose(ours["y"], x @ weights.astype(np.float32).T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimize", ["balanced", "size", "ram"])
def test_few_weights_are_not_worth_a_second_kernel(tmp_path: Path, optimize: str) -> None:
    """Beside a layer with other floats, whose kernel is linked anyway."""
    nodes = [node("MatMul", "x a", "h"), node("MatMul", "h b", "y")]
    constants: dict[str, Any] = {"a": RNG.normal(0, 1, (16, 16)).astype(np.float32)}
    few = model(nodes, {"x": (1, 16)}, "y", b=halves(16, 40).astype(np.float32), **constants)
    assert kernels(compiled(tmp_path, few, optimize=optimize)) == ["tinyml_dense_f32"] * 2
    many = model(nodes, {"x": (1, 16)}, "y", b=halves(16, 90).astype(np.float32), **constants)
    assert kernels(compiled(tmp_path, many, optimize=optimize)) == [
        "tinyml_dense_f32",
        "tinyml_dense_f32_f16",
    ]


@pytest.mark.parametrize(
    "values, whether",
    [
        ([0.0, -0.0, 65504.0, 2.0**-24, 1 / 3], False),
        ([0.0, -0.0, 65504.0, 2.0**-24, 0.25], True),
        ([65520.0], False),
        ([2.0**-25], False),
        ([np.nan], False),
    ],
)
def test_which_numbers_are_float16(values: list[float], whether: bool) -> None:
    assert are_float16(np.array(values, np.float32)) == whether


def test_every_float16_number_becomes_the_right_float(tmp_path: Path) -> None:
    """All finite ones, as the weights of a layer whose input picks one after the other."""
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    every = every[np.isfinite(every)]
    columns = np.pad(every, (0, -every.size % 64)).reshape(64, -1).astype(np.float32)
    content = model([node("MatMul", "x m", "y")], {"x": (64, 64)}, "y", m=columns)
    found = compiled(tmp_path, content)
    assert kernels(found) == ["tinyml_dense_f32_f16"]
    (ours,) = harness.run_files(found.files, "host", [{"x": np.eye(64, dtype=np.float32)}]).outputs
    np.testing.assert_array_equal(ours["y"], columns)
