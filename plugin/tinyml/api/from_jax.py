# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions and modules of JAX as model files: by jax2onnx, or by JAX's own jax2tf and TensorFlow."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tinyml.api.exporters import exported
from tinyml.base.errors import ConfigError, ToolError
from tinyml.ir import Array

OPSET = 21
"""Of files from jax2onnx: the oldest that it is tested with."""

MODULES = (("flax.nnx", "Module"), ("equinox", "Module"))
"""Classes whose objects are called like functions."""


def from_jax(jax: Any, model: Any, example: Any) -> bytes | None:
    """The bytes of an ONNX file, or of a TFLite file where only jax2tf is installed."""
    if not _is_function(jax, model):
        return None
    if isinstance(example, FunctionType):  # data that has an example
        example = example()
    if example is None:
        raise ConfigError(
            "a JAX function needs example inputs: they determine the shapes",
            "tinyml.load(function, numpy.zeros((1, 28, 28, 1), 'float32')), or its shape, or a tuple of "
            "arrays; quantize() and compile(calibration=...) take the first sample of their data",
        )
    inputs = _arrays(example)
    if importlib.util.find_spec("jax2onnx") is not None:
        return exported("jax2onnx", model, lambda: _by_jax2onnx(model, inputs))
    if importlib.util.find_spec("tensorflow") is not None and _has_jax2tf():
        return exported("jax2tf", model, lambda: _by_jax2tf(model, inputs))
    raise ToolError("a JAX function needs jax2onnx", "pip install jax2onnx (or tensorflow, for jax2tf)")


def _is_function(jax: Any, model: Any) -> bool:
    """Something that JAX can trace: a jitted or plain function, or a module of Flax or Equinox."""
    while isinstance(model, functools.partial):
        model = model.func
    for name, kind in MODULES:
        if name in sys.modules and isinstance(model, getattr(sys.modules[name], kind)):
            return callable(model)
    return isinstance(model, FunctionType | MethodType | type(jax.jit(abs)))


def _arrays(example: Any) -> list[Array]:
    """One array for each input, from arrays or from one shape."""
    if isinstance(example, tuple | list) and example and all(isinstance(size, int) for size in example):
        return [np.zeros(tuple(example), np.float32)]
    return [np.asarray(one) for one in (example if isinstance(example, tuple) else (example,))]


def _by_jax2onnx(model: Callable[..., Any], inputs: list[Array]) -> bytes:
    import jax
    from jax2onnx import to_onnx

    try:
        made = to_onnx(model, inputs, opset=OPSET)
    finally:
        jax.clear_caches()  # else a jitted function stays traced with operators that only jax2onnx knows
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def _has_jax2tf() -> bool:
    return importlib.util.find_spec("jax.experimental.jax2tf") is not None


def _by_jax2tf(model: Callable[..., Any], inputs: list[Array]) -> bytes:
    import tensorflow as tf
    from jax.experimental import jax2tf

    function = tf.function(jax2tf.convert(lambda *arrays: model(*arrays)), autograph=False)
    specifications = [tf.TensorSpec(one.shape, one.dtype, f"x{index}") for index, one in enumerate(inputs)]
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function(*specifications)], function
    )
    content: bytes = converter.convert()
    return content
