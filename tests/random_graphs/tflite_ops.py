# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite models of one operator, with every option and type that its schema has; LiteRT is the reference.

A maker draws whatever the schema allows. What LiteRT refuses, or cannot run, is drawn again; its results say
which shapes the file must declare.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.random_graphs.recipe import Model, Recipe
from tests.random_graphs.tflite_draw import Draw
from tests.random_graphs.tflite_layers import LAYERS
from tests.random_graphs.tflite_movement import MOVEMENT
from tests.random_graphs.tflite_recurrent import RECURRENT
from tinyml.ir import Array, Quant, Shape

SAMPLES = 3
ATTEMPTS = 60

Maker = Callable[[Draw], None]


def tflite_op_model(recipe: Recipe) -> Model:
    """The first model of a series that LiteRT runs."""
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([*recipe.steps, attempt])
        draw = Draw(rng)
        MAKERS[int(rng.integers(len(MAKERS)))](draw)
        samples = draw.samples(SAMPLES)
        shapes = shapes_of_results(draw.file(), samples)
        if shapes is not None and all(0 not in shape for shape in shapes):
            return Model(recipe, draw.file(shapes), samples)
    raise RuntimeError(f"LiteRT runs none of the models of {recipe}")


def shapes_of_results(content: bytes, samples: Sequence[Sequence[Array]]) -> list[Shape] | None:
    """In a process of its own: LiteRT ends with a signal on some files, such as those without options."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(writing, json.dumps([array.shape for array in run(content, samples)[0]]).encode())
        except (RuntimeError, ValueError):
            pass
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return [tuple(shape) for shape in json.loads(text)] if text else None


def run(content: bytes, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of Google's reference kernels."""
    from ai_edge_litert import interpreter

    runtime: Any = interpreter.Interpreter(
        model_content=content, experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    runtime.allocate_tensors()
    runs = []
    for sample in samples:
        for detail, x in zip(runtime.get_input_details(), sample, strict=True):
            runtime.set_tensor(detail["index"], x)
        runtime.invoke()
        runs.append([runtime.get_tensor(d["index"]).copy() for d in runtime.get_output_details()])
    return runs


ARITHMETIC = {
    "ADD": ("AddOptions", ("float32", "int8", "uint8", "int16", "int32", "int64")),
    "SUB": ("SubOptions", ("float32", "int8", "uint8", "int16", "int32", "int64")),
    "MUL": ("MulOptions", ("float32", "int8", "uint8", "int16", "int32", "int64")),
    "DIV": ("DivOptions", ("float32", "int32")),  # uint8 is computed in float, which a note says
}
PAIRS = {
    "MAXIMUM": ("MaximumMinimumOptions", ("float32", "int8", "uint8", "int16", "int32", "int64")),
    "MINIMUM": ("MaximumMinimumOptions", ("float32", "int8", "uint8", "int16", "int32", "int64")),
    "FLOOR_DIV": ("FloorDivOptions", ("float32", "int32", "int8", "int16")),
    "FLOOR_MOD": ("FloorModOptions", ("float32", "int32", "int64", "int8", "int16")),
    "SQUARED_DIFFERENCE": ("SquaredDifferenceOptions", ("float32", "int8", "int32")),
    "POW": ("PowOptions", ("float32", "int32")),
    "PRELU": ("", ("float32", "int8", "uint8")),
    **dict.fromkeys(
        ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"),
        ("", ("float32", "int8", "uint8", "int32", "int64")),
    ),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR"), ("", ("bool",))),
}
COMPARES = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
UNARY = {
    **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1"), ("float32", "int8", "uint8", "int16")),
    **dict.fromkeys(("LOGISTIC", "TANH"), ("float32", "int8", "uint8", "int16")),
    "HARD_SWISH": ("float32", "int8", "uint8"),
    "ELU": ("float32", "int8"),
    "ABS": ("float32", "int8", "int16", "int32"),
    "NEG": ("float32", "int32", "int64"),
    "RSQRT": ("float32", "int8"),
    "GELU": ("float32", "int8", "uint8"),
    "SIGN": ("float32", "int32"),
    **dict.fromkeys(("EXP", "LOG", "SQRT", "SQUARE", "SIN", "COS", "CEIL", "FLOOR", "ROUND"), ("float32",)),
    "LOGICAL_NOT": ("bool",),
    "ZEROS_LIKE": ("float32", "int32"),
}


def _broadcast(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    kept = draw.rng.integers(0, 3, len(shape)) > 0
    cut = int(draw.pick(0, 0, 0, draw.rng.integers(0, len(shape) + 1)))
    return tuple(e if keep else 1 for e, keep in zip(shape, kept, strict=True))[cut:]


def _two(draw: Draw, dtype: str, nonzero: bool) -> list[Any]:
    shape = draw.shape(1, 2, 3, 4)
    other = draw.pick(shape, shape, _broadcast(draw, shape))
    pair = [draw.tensor(shape, dtype), draw.operand(other, dtype)]
    if nonzero and dtype.startswith("int") and pair[1].data is None:
        draw.ranges[pair[1].name] = draw.pick((1, 50), (-50, -1))
    return pair if draw.chance(0.6) or nonzero else pair[::-1]


def arithmetic(draw: Draw) -> None:
    name = draw.pick(*ARITHMETIC)
    table, dtypes = ARITHMETIC[name]
    dtype = draw.pick(*dtypes)
    fields: dict[str, Any] = {"FusedActivationFunction": draw.activation}
    if name in ("ADD", "SUB") and draw.chance(0.6):
        fields["PotScaleInt16"] = draw.chance(0.4)  # true if it is not said
    pair = _two(draw, dtype, name == "DIV")
    draw.call(name, pair, [draw.output(dtype, like=draw.pick(None, None, pair[0]))], table, **fields)


def pair(draw: Draw) -> None:
    name = draw.pick(*PAIRS)
    table, dtypes = PAIRS[name]
    dtype = draw.pick(*dtypes)
    operands = _two(draw, dtype, name in ("FLOOR_DIV", "FLOOR_MOD"))
    if name == "FLOOR_DIV" and dtype == "float32" and draw.chance(0.5):  # quotients that are almost whole
        step = np.float32(draw.pick(0.1, 0.3, 0.7))
        whole = draw.rng.integers(-40, 40, operands[0].shape)
        draw.inputs = [value for value in draw.inputs if value is not operands[0]]
        operands[0] = draw.constant((whole * step).astype(np.float32))
        operands[1] = draw.tensor((1,), "float32")
        fixed = draw.constant(np.asarray([step], np.float32))
        draw.call("MAXIMUM", [operands[1], fixed], [value := draw.output("float32")])
        operands[1] = value
    if name == "POW" and dtype == "int32":
        operands = [draw.tensor(value.shape, dtype, limits=(0, 6)) for value in operands]
    if name in ("MAXIMUM", "MINIMUM"):
        operands[1] = draw.tensor(operands[1].shape, dtype, operands[0].quant)
    result = "bool" if name in COMPARES or name.startswith("LOGICAL") else dtype
    draw.call(
        name,
        operands,
        [draw.output(result, like=operands[0] if name in ("MAXIMUM", "MINIMUM") else None)],
        table,
    )


def unary(draw: Draw) -> None:
    name = draw.pick(*UNARY)
    dtype = draw.pick(*UNARY[name])
    x = draw.tensor(draw.shape(1, 2, 3, 4), dtype)
    y = draw.output(dtype, _function_quant(name, dtype), like=x if draw.chance(0.2) else None)
    table, fields = ("GeluOptions", {"Approximate": draw.chance(0.5)}) if name == "GELU" else ("", {})
    draw.call(name, [x], [y], table, **fields)


def _function_quant(name: str, dtype: str) -> Quant | None:
    """LOGISTIC and TANH have outputs of one scale."""
    fixed = {
        ("LOGISTIC", "int8"): (1 / 256, -128),
        ("LOGISTIC", "uint8"): (1 / 256, 0),
        ("LOGISTIC", "int16"): (1 / 32768, 0),
        ("TANH", "int8"): (1 / 128, 0),
        ("TANH", "uint8"): (1 / 128, 128),
        ("TANH", "int16"): (1 / 32768, 0),
    }.get((name, dtype))
    return Quant.per_tensor(*fixed) if fixed else None


def leaky(draw: Draw) -> None:
    x = draw.tensor(draw.shape(1, 3, 4), dtype := draw.pick("float32", "int8", "uint8", "int16"))
    alpha = draw.pick(0.1, 0.0, 1.0, 1.5, -0.2, -1.0, -3.0)
    draw.call(
        "LEAKY_RELU", [x], [draw.output(dtype, like=draw.pick(None, x))], "LeakyReluOptions", Alpha=alpha
    )


def normalising(draw: Draw) -> None:
    name = draw.pick("SOFTMAX", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
    dtype = draw.pick("float32", "int8", "uint8", "int16")
    if name == "L2_NORMALIZATION":
        dtype = "float32"  # of bytes, LiteRT rounds in steps
    x = draw.tensor(draw.shape(1, 2, 3, 4, most=7), dtype)
    result = draw.pick(dtype, dtype, "int16") if name == "SOFTMAX" else dtype
    fixed = {
        "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
        "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)},
        "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
    }[name].get(result)
    y = draw.output(result, Quant.per_tensor(*fixed) if fixed else None)
    if name == "SOFTMAX":
        draw.call(name, [x], [y], "SoftmaxOptions", Beta=draw.pick(1.0, 1.0, 0.5, 2.0))
    elif name == "LOG_SOFTMAX":
        draw.call(name, [x], [y], "LogSoftmaxOptions")
    else:
        draw.call(name, [x], [y], "L2NormOptions", FusedActivationFunction=draw.activation)


MAKERS: tuple[Maker, ...] = (
    *(arithmetic, arithmetic, arithmetic, pair, pair, unary, unary, leaky, normalising),
    *LAYERS,
    *MOVEMENT,
    *RECURRENT,
)
