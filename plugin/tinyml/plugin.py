# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a file with operators of your own needs: import from here, and from nowhere else in ``tinyml``.

An operator has three parts, as every built-in operator has: a frozen dataclass derived from ``Op`` (what it
computes, in numpy), one or more ``Kernel`` classes (how, in C), and readers for the nodes of ONNX or TFLite
files. docs/operators.md explains each. ``INTERFACE`` changes when these names, or what they promise, change.
"""

from __future__ import annotations

from tinyml.base.c import number as c_number
from tinyml.base.errors import ConfigError, UnsupportedError
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Quant, Shape, Tensor, TensorType, given
from tinyml.ir.constraints import constraint as rule
from tinyml.ops.framework.kernel import InPlace, Kernel, Overlay, Sheet, over_inputs, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_custom_op
from tinyml.ops.shared.operands import at_least_rank, integers, of_rank, present, same_type

INTERFACE = 1

__all__ = [
    "INTERFACE",
    "Array",
    "Builder",
    "ConfigError",
    "DType",
    "InPlace",
    "Kernel",
    "Layer",
    "OnnxNode",
    "Op",
    "Overlay",
    "Quant",
    "Shape",
    "Sheet",
    "Target",
    "Tensor",
    "TensorType",
    "TfliteNode",
    "UnsupportedError",
    "at_least_rank",
    "c_number",
    "given",
    "integers",
    "of_rank",
    "onnx_op",
    "over_inputs",
    "present",
    "register_kernels",
    "rule",
    "same_type",
    "tflite_custom_op",
]
