# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The intermediate representation: tensors, nodes, one graph. Frozen, typed, format-neutral.

Activations of spatial operators are NHWC. A quantised tensor carries its own parameters, so an
operator on int8 tensors *is* the integer operator: there is no second set of node types.
Memory that persists between runs is a ``State``: a tensor that is read like an input and, at the end
of the run, takes the value of another tensor.
"""

from tinyml.ir.graph import Count, Graph, State
from tinyml.ir.op import Constraint, Layer, Node, Op, View, given
from tinyml.ir.tensor import Array, DType, Quant, Shape, Tensor, TensorType

__all__ = [
    "Array",
    "Constraint",
    "Count",
    "DType",
    "Graph",
    "Layer",
    "Node",
    "Op",
    "Quant",
    "Shape",
    "State",
    "Tensor",
    "TensorType",
    "View",
    "given",
]
