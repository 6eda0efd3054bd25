# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A quantised convolution, something that nothing quantises, and a quantised dense layer without an end.

Tools for quantisation put pairs of Quantize and Dequantize behind layers that compute, and seldom behind
pools, reshapes, transposes, concatenations and limits. All layers with weights must compute on integers. An
average is rounded nowhere in the file, so the layer after it cannot; a note says that, and what to change.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx

from tests.first_sight import Case, Holds, Right
from tests.support.onnx_models import model, node
from tinyml.cost.hints import hints
from tinyml.ir import Array
from tinyml.ops.weighted.weighted import Weighted
from tinyml.pipeline import Options, compile_model
from tinyml.verbs.cli import main

Nodes: TypeAlias = Sequence[onnx.NodeProto]


@dataclass(frozen=True)
class Between:
    """From the real values ``c`` and ``e`` (both 1x4x6x6, of one scale) to ``b``, which has ``features``."""

    features: int
    nodes: Callable[[], Nodes]


BETWEEN = {
    "max_pool": Between(36, lambda: [node("MaxPool", "c", "b", kernel_shape=[2, 2], strides=[2, 2])]),
    "average_pool": Between(36, lambda: [node("AveragePool", "c", "b", kernel_shape=[2, 2], strides=[2, 2])]),
    "global_average": Between(4, lambda: [node("GlobalAveragePool", "c", "b")]),
    "global_maximum": Between(4, lambda: [node("GlobalMaxPool", "c", "b")]),
    "mean": Between(4, lambda: [node("ReduceMean", "c", "b", axes=[2, 3])]),
    "reshape": Between(144, lambda: [node("Reshape", "c shape", "b")]),
    "transpose": Between(144, lambda: [node("Transpose", "c", "b", perm=[0, 2, 3, 1])]),
    "transpose_and_pool": Between(
        16,
        lambda: [
            node("Transpose", "c", "t", perm=[0, 1, 3, 2]),
            node("MaxPool", "t", "b", kernel_shape=[3, 3], strides=[3, 3]),
        ],
    ),
    "concatenation": Between(288, lambda: [node("Concat", "c e", "b", axis=1)]),
    "limits": Between(144, lambda: [node("Clip", "c low high", "b")]),
    "relu": Between(144, lambda: [node("Relu", "c", "b")]),
    "slice": Between(72, lambda: [node("Slice", "c starts ends axes", "b")]),
    "squeeze": Between(144, lambda: [node("Squeeze", "c first", "s"), node("Unsqueeze", "s first", "b")]),
    "split": Between(72, lambda: [node("Split", "c", "b rest", axis=1)]),
    "larger_of_two": Between(144, lambda: [node("Max", "c e", "b")]),
    "nearest_pixels": Between(576, lambda: [node("Resize", "c _ factors", "b", mode="nearest")]),
    "pool_and_dropout": Between(
        36,
        lambda: [
            node("MaxPool", "c", "t", kernel_shape=[2, 2], strides=[2, 2]),
            node("Dropout", "t", "b"),
        ],
    ),
    "padding": Between(256, lambda: [node("Pad", "c around", "b")]),
    "gather": Between(72, lambda: [node("Gather", "c chosen", "b", axis=1)]),
}


def pair(name: str, scale: str = "") -> Nodes:
    """``name_r`` becomes ``name``, through int8 with the scale of ``scale``."""
    scale = scale or name
    return [
        node("QuantizeLinear", f"{name}_r {scale}_s zero", f"{name}_q"),
        node("DequantizeLinear", f"{name}_q {scale}_s zero", name),
    ]


def network(between: Between, weights: bool = True, end: bool = False) -> bytes:
    """``weights``: those of the dense layer are int8. ``end``: its output is quantised."""
    rng = np.random.default_rng(12)
    nodes = [
        *pair("x"),
        node("DequantizeLinear", "k_q k_s zero", "k"),
        node("DequantizeLinear", "l_q k_s zero", "l"),
        *(node("Conv", f"x {kernel}", f"{to}_p", pads=[1, 1, 1, 1]) for kernel, to in ("kc", "le")),
        *(node("Relu", f"{name}_p", f"{name}_r") for name in "ce"),
        *(each for name in "ce" for each in pair(name, "c")),
        *between.nodes(),
        node("Flatten", "b", "f"),
        *([node("DequantizeLinear", "d_q d_s zero", "d")] if weights else []),
        node("MatMul", "f d", "y_r" if end else "y"),
        *(pair("y") if end else []),
    ]
    dense = rng.integers(-127, 128, (between.features, 5)).astype(np.int8)
    kernels = rng.integers(-127, 128, (2, 4, 1, 3, 3)).astype(np.int8)
    constants: dict[str, Array] = {
        "k_q": kernels[0],
        "l_q": kernels[1],
        "d_q" if weights else "d": dense if weights else dense.astype(np.float32) / 100,
        "zero": np.int8(0),
        **{
            f"{name}_s": np.float32(s) for name, s in zip("xkcdy", (0.02, 0.01, 0.05, 0.01, 0.4), strict=True)
        },
        "shape": np.array([1, 12, 12]),
        "low": np.float32(0.1),
        "high": np.float32(3),
        "starts": np.array([1]),
        "ends": np.array([3]),
        "axes": np.array([1]),
        "first": np.array([0]),
        "factors": np.array([1, 1, 2, 2], np.float32),
        "around": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "chosen": np.array([3, 0]),
    }
    used = {name for each in nodes for name in each.input}
    kept: dict[str, Any] = {name: np.asarray(value) for name, value in constants.items() if name in used}
    return model(nodes, {"x_r": [1, 1, 6, 6]}, "y", **kept)


AVERAGES = {"average_pool", "global_average", "mean"}


def after_an_average(between: Between, folder: Path) -> None:
    """In float, which a note says; on integers if the average is quantised."""
    (folder / "m.onnx").write_bytes(network(between))
    said = "\n".join(hints(compile_model(folder / "m.onnx", Options("m", "cortex-m4"))))
    assert "computes in float: nothing quantises the input. Quantise what comes before" in said, said
    assert "computes in float: nothing quantises the output. Quantise the output as well" in said, said

    def rounded() -> Nodes:
        *before, last = between.nodes()
        last.output[0] = "b_r"
        return [*before, last, *pair("b", "c")]

    on_integers(Between(between.features, rounded), folder)


def on_integers(between: Between, folder: Path) -> None:
    """Every layer with weights, whether the output is quantised or not."""
    for end in (False, True):
        (folder / "m.onnx").write_bytes(network(between, end=end))
        compiled = compile_model(folder / "m.onnx", Options("m", "cortex-m4"))
        weighted = [layer for layer in compiled.graph.layers() if isinstance(layer.op, Weighted)]
        floats = [layer.name for layer in weighted if layer.input(0).dtype.value != "int8"]
        assert not floats, f"in float: {floats}"
        said = [note for note in hints(compiled) if "in float" in note]
        assert not said, said


def float_layers_are_named(folder: Path) -> None:
    """By `compile`, by `report` and by `add`: which, why, and what to change."""
    path = folder / "m.onnx"
    path.write_bytes(network(BETWEEN["max_pool"], weights=False))
    app = folder / "app"
    app.mkdir()
    (app / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    (app / "prj.conf").touch()
    target = ["--target", "cortex-m4"]
    for words in (
        ["compile", str(path), *target, "-o", str(folder / "out")],
        ["report", str(path), *target],
        ["add", str(path), "--app", str(app)],
    ):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            assert main(words) == 0, out.getvalue()
        said = " ".join(out.getvalue().split())
        for part in ("computes in float", "the weights are float", "Quantise the weights as well"):
            assert part in said, f"{words[0]} does not say {part!r}: {said}"


def a_batch_is_named(folder: Path) -> None:
    """An example with 32 samples made a model for 32, which needs 32 times the arena."""
    path = folder / "m.onnx"
    weights = np.random.default_rng(0).normal(0, 1, (64, 10)).astype(np.float32)
    sizes = {}
    for count in (1, 32):
        path.write_bytes(model([node("MatMul", "x w", "y")], {"x": [count, 64]}, "y", w=weights))
        compiled = compile_model(path, Options("m", "cortex-m4"))
        sizes[count] = compiled.summary["arena_bytes"]
        said = [note for note in hints(compiled) if "batch of 1" in note]
        assert bool(said) == (count == 32), said
    assert sizes[32] == 32 * sizes[1]


CASES: list[Case] = [
    *(Right(name, partial(network, between), steps=1) for name, between in BETWEEN.items()),
    *(
        Holds(
            f"{name}_on_integers",
            partial(after_an_average if name in AVERAGES else on_integers, between),
        )
        for name, between in BETWEEN.items()
    ),
    Holds("float_layers_are_named", float_layers_are_named),
    Holds("a_batch_is_named", a_batch_is_named),
]
