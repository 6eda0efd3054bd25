# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A random TFLite model, written with the schema package; Google's interpreter is its reference."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.random_graphs.recipe import Model, Recipe
from tests.random_graphs.tflite_draft import BYTES, Draft, pick
from tests.random_graphs.tflite_more import MORE_FLAT, MORE_SPATIAL
from tests.support.tflite_writer import Part, Value, write
from tinyml.ir import Array

SAMPLES = 4
SAME, VALID = 0, 1


def tflite_model(recipe: Recipe) -> Model:
    draft = Draft(recipe)
    for seed in recipe.steps:
        rng = np.random.default_rng(seed)
        computed = ["x", *(call.outputs[0] for call in draft.calls)]
        name = computed[-1] if rng.random() < 0.7 else computed[int(rng.integers(len(computed)))]
        x = draft.values[name]
        choices = SPATIAL if len(x.shape) == 4 else FLAT
        if draft.dtype in BYTES:
            choices += MORE_SPATIAL if len(x.shape) == 4 else MORE_FLAT
        choices[int(rng.integers(len(choices)))](draft, rng, x)
    if not draft.calls:
        relu(draft, np.random.default_rng(0), draft.input)
    read = {name for call in draft.calls for name in call.inputs}
    outputs = [call.outputs[0] for call in draft.calls if call.outputs[0] not in read]
    part = Part(list(draft.values.values()), draft.calls, ["x"], outputs)
    rng = np.random.default_rng(zlib.crc32(repr(recipe).encode()))
    samples = [[_sample(rng, draft.input)] for _ in range(SAMPLES)]
    return Model(recipe, write(part), samples)


def _sample(rng: Any, x: Value) -> Array:
    if x.dtype == "float32":
        return np.asarray(rng.normal(0, 1.5, x.shape), np.float32)
    info = np.iinfo(x.dtype)
    return np.asarray(rng.integers(info.min, info.max + 1, x.shape), x.dtype)


def litert(model: Model) -> list[list[Array]]:
    """The outputs of Google's reference kernels."""
    from ai_edge_litert import interpreter

    runtime: Any = interpreter.Interpreter(
        model_content=model.content, experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    runtime.allocate_tensors()
    runs = []
    for (x,) in model.samples:
        runtime.set_tensor(runtime.get_input_details()[0]["index"], x)
        runtime.invoke()
        runs.append([runtime.get_tensor(d["index"]).copy() for d in runtime.get_output_details()])
    return runs


def _spatial(rng: Any, x: Value) -> tuple[list[int], dict[str, int], list[int]] | None:
    """Kernel, options and output extents."""
    padding = int(pick(rng, SAME, VALID))
    kernel = [int(pick(rng, 1, 2, 3, 5)) for _ in range(2)]
    strides = [int(pick(rng, 1, 1, 2)) for _ in range(2)]
    extents = []
    for extent, k, s in zip(x.shape[1:3], kernel, strides, strict=True):
        extents.append(-(-extent // s) if padding == SAME else (extent - k) // s + 1)
    if min(extents) < 1:
        return None
    return kernel, {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}, extents


def conv(draft: Draft, rng: Any, x: Value) -> None:
    window = _spatial(rng, x)
    if window is None:
        return
    kernel, options, extents = window
    depthwise = rng.random() < 0.4
    outputs = x.shape[3] if depthwise else int(pick(rng, 1, 2, 3, 4, 5, 8, 9))
    shape = (1, *kernel, outputs) if depthwise else (outputs, *kernel, x.shape[3])
    per_channel = draft.dtype == "int16" or rng.random() < 0.7
    w, scales = draft.weights(rng, shape, 3 if depthwise else 0, per_channel)
    b = draft.bias(rng, x, scales, outputs)
    fan = kernel[0] * kernel[1] * (1 if depthwise else x.shape[3])
    y = draft.result((1, *extents, outputs), draft.sums_scale(rng, x, scales, fan))
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    extra = {"DepthMultiplier": 1} if depthwise else {}
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    options = {**options, **extra, "DilationWFactor": 1, "DilationHFactor": 1}
    draft.call(name, [x, w, b], y, table, FusedActivationFunction=int(pick(rng, 0, 0, 1, 3)), **options)


def pool(draft: Draft, rng: Any, x: Value) -> None:
    window = _spatial(rng, x)
    if window is None:
        return
    kernel, options, extents = window
    y = draft.result((1, *extents, x.shape[3]), 1, like=x)
    name = pick(rng, "MAX_POOL_2D", "AVERAGE_POOL_2D")
    draft.call(name, [x], y, "Pool2DOptions", FilterHeight=kernel[0], FilterWidth=kernel[1], **options)


def relu(draft: Draft, rng: Any, x: Value) -> None:
    y = draft.result(x.shape, 1, like=x)
    draft.call(pick(rng, "RELU", "RELU6"), [x], y)


def function(draft: Draft, rng: Any, x: Value) -> None:
    name = pick(rng, "LOGISTIC", "TANH")
    if not draft.quantised:
        y = draft.result(x.shape, 1)
    elif draft.dtype in BYTES:
        logistic = name == "LOGISTIC"
        y = draft.tensor(
            f"t{len(draft.calls)}", x.shape, 1 / 256 if logistic else 1 / 128, -128 if logistic else 0
        )
    else:
        y = draft.tensor(f"t{len(draft.calls)}", x.shape, 1 / 128)
    draft.call(name, [x], y)


def binary(draft: Draft, rng: Any, x: Value) -> None:
    computed = ["x", *(call.outputs[0] for call in draft.calls)]
    equal = [n for n in computed if draft.values[n].shape == x.shape]
    other = draft.values[equal[int(rng.integers(len(equal)))]]
    name = pick(rng, "ADD", "SUB", "MUL")
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[name]
    scale = 1.0
    if draft.quantised:
        scale = draft.scale(x) + draft.scale(other)
        scale = draft.scale(x) * draft.scale(other) * 90 if name == "MUL" else scale
    options: dict[str, Any] = {"FusedActivationFunction": int(pick(rng, 0, 0, 1))}
    if name != "MUL" and draft.dtype == "int16":
        options["PotScaleInt16"] = False
    draft.call(name, [x, other], draft.result(x.shape, scale), table, **options)


def concat(draft: Draft, rng: Any, x: Value) -> None:
    axis = int(rng.integers(1, len(x.shape)))
    shape = [*x.shape]
    shape[axis] *= 2
    y = draft.result(tuple(shape), 1, like=x)
    draft.call("CONCATENATION", [x, x], y, "ConcatenationOptions", Axis=axis)


def pad(draft: Draft, rng: Any, x: Value) -> None:
    amounts = rng.integers(0, 3, (len(x.shape), 2))
    amounts[0] = 0
    paddings = draft.constant(amounts.astype(np.int32))
    y = draft.result(tuple(np.asarray(x.shape) + amounts.sum(axis=1)), 1, like=x)
    draft.call("PAD", [x, paddings], y, "PadOptions")


def transpose(draft: Draft, rng: Any, x: Value) -> None:
    perm = [0, *(int(i) + 1 for i in rng.permutation(len(x.shape) - 1))]
    y = draft.result(tuple(x.shape[i] for i in perm), 1, like=x)
    draft.call("TRANSPOSE", [x, draft.ints(*perm)], y, "TransposeOptions")


def reshape(draft: Draft, rng: Any, x: Value) -> None:
    size = int(np.prod(x.shape))
    first = int(pick(rng, *(f for f in range(1, size + 1) if size % f == 0)))
    new = pick(rng, (1, size), (1, first, 1, size // first))
    y = draft.result(new, 1, like=x)
    draft.call("RESHAPE", [x, draft.ints(*new)], y, "ReshapeOptions")


def mean(draft: Draft, rng: Any, x: Value) -> None:
    y = draft.result((1, 1, 1, x.shape[3]), draft.scale(x) * 0.8 if draft.quantised else 1)
    draft.call("MEAN", [x, draft.ints(1, 2)], y, "ReducerOptions", KeepDims=True)


def dense(draft: Draft, rng: Any, x: Value) -> None:
    outputs = int(pick(rng, 1, 2, 3, 5, 8))
    w, scales = draft.weights(rng, (outputs, x.shape[1]), 0, False)
    b = draft.bias(rng, x, scales, outputs)
    y = draft.result((1, outputs), draft.sums_scale(rng, x, scales, x.shape[1]))
    draft.call("FULLY_CONNECTED", [x, w, b], y, "FullyConnectedOptions")


def softmax(draft: Draft, rng: Any, x: Value) -> None:
    if x.shape[-1] > 1000:  # LiteRT aborts
        return
    if draft.dtype == "int16":
        y = draft.tensor(f"t{len(draft.calls)}", x.shape, 1 / 128)
    else:
        y = draft.tensor(f"t{len(draft.calls)}", x.shape, 1 / 256, -128)
    draft.call("SOFTMAX", [x], y, "SoftmaxOptions", Beta=1.0)


Maker = Callable[[Draft, Any, Value], None]
SPATIAL: tuple[Maker, ...] = (
    *(conv, conv, conv, pool, pool, relu, function, binary, binary, concat, pad, transpose, reshape, mean),
)
FLAT: tuple[Maker, ...] = (dense, dense, relu, function, binary, concat, reshape, softmax)
