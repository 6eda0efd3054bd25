# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models by somebody else's generator: NNSmith solves constraints on shapes and types, PyTorch exports ONNX.

Requires ``pip install west-tinyml[nnsmith]``. The first step of a recipe is the seed, the number of its steps
the largest number of operators.
"""

from __future__ import annotations

import functools
import io
import random
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import onnx

from tests.random_graphs.recipe import Model, Recipe
from tinyml.ir import Array

SAMPLES = 4
TYPES = ("f32", "i32", "i64", "bool")
ELEMENTS = 4096
"""Of the largest tensor."""


@functools.cache
def _operators() -> tuple[Any, Any]:
    """NNSmith's type of ONNX models, and the operators that onnxruntime and PyTorch support for it."""
    model_type = import_module("nnsmith.materialize").Model.init("onnx", backend_target="cpu")
    model_type.add_seed_setter()
    torch = import_module("torch")
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    narrow = import_module("nnsmith.narrow_spec")
    return model_type, narrow.auto_opset(model_type, None)


def nnsmith_model(recipe: Recipe) -> Model:
    seed = recipe.steps[0]
    random.seed(seed)
    np.random.seed(seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model_type, operators = _operators()
        generator = import_module("nnsmith.graph_gen").model_gen(
            opset=operators,
            method="symbolic-cinit",
            seed=seed,
            max_elem_per_tensor=ELEMENTS,
            max_nodes=len(recipe.steps),
            timeout_ms=10000,
            dtype_choices=list(TYPES),
        )
        made = model_type.from_gir(generator.make_concrete())
        made.refine_weights()
    proto = made.onnx_model
    stream = io.BytesIO()
    onnx.save(proto, stream)
    rng = np.random.default_rng(seed)
    samples = [[_sample(rng, value) for value in proto.graph.input] for _ in range(SAMPLES)]
    return Model(recipe, stream.getvalue(), samples)


def _sample(rng: np.random.Generator, value: onnx.ValueInfoProto) -> Array:
    kind = value.type.tensor_type
    shape = [dimension.dim_value for dimension in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if dtype.kind == "f":
        return np.asarray(rng.uniform(0.5, 3, shape), dtype)
    return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 8, shape), dtype)
