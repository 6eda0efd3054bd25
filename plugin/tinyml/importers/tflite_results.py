# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the readers of TFLite operators return, against what the file declares."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers.tflite_file import TensorRecord
from tinyml.importers.tflite_values import type_of
from tinyml.ir import DType, Layer, Shape, Tensor
from tinyml.ops.framework.reading import TfliteNode
from tinyml.ops.quantization.requantize import Requantize


def check_activation(node: TfliteNode) -> None:
    """Refuse a fused activation function that the reader of an operator did not look at."""
    if node.ignored_activation:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} has a fused activation function, which it cannot have",
            "convert the model with the activation as an operator of its own",
        )


def check_types(node: TfliteNode, layers: Iterable[Layer]) -> None:
    """Refuse what a reader made if a type that the file declares is not the one that is computed."""
    for layer in layers:
        if isinstance(layer.op, Requantize):  # from any integers to any others
            continue
        for tensor, inferred in zip(layer.outputs, layer.op.infer(layer.inputs), strict=True):
            if tensor.dtype is not inferred.dtype:
                raise _of_another_type(node, inferred.dtype, tensor.dtype)


def _of_another_type(node: TfliteNode, computed: DType, declared: DType) -> UnsupportedError:
    return UnsupportedError(
        f"{node.op_type} operator {node.name!r} computes {computed.value}, and the file declares "
        f"{declared.value}",
        "convert the model so that inputs and outputs of this operator have one type",
    )


def check_result(node: TfliteNode, record: TensorRecord, tensor: Tensor, fixed_shapes: bool) -> None:
    """Refuse a result of another type or shape than the file declares: later operators rely on both."""
    declared = type_of(record).dtype
    if tensor.dtype is not declared:
        raise _of_another_type(node, tensor.dtype, declared)
    if fixed_shapes and contradicts(record, tensor) and not _batch_of_one(node, record, tensor):
        raise ModelError(
            f"{node.op_type} operator {node.name!r} computes {extents(tensor.shape)}, and the file declares "
            f"{extents(record.shape)}",
            "convert the model again",
        )


def _batch_of_one(node: TfliteNode, record: TensorRecord, tensor: Tensor) -> bool:
    """Whether TensorFlow's converter declares a batch that LiteRT's operator does not give.

    It does so for ``tf.image.non_max_suppression_padded``, before an operator that removes the batch.
    """
    return node.op_type == "NON_MAX_SUPPRESSION_V4" and record.shape == (1, *tensor.shape)


def check_output(path: Path, record: TensorRecord, tensor: Tensor) -> None:
    """Refuse a model that declares another shape for an output than its operators compute."""
    if contradicts(record, tensor):
        raise ModelError(
            f"{path} declares its output {record.name!r} as {extents(record.shape)}, "
            f"and its operators compute {extents(tensor.shape)}",
            "convert the model again",
        )


def contradicts(record: TensorRecord, tensor: Tensor) -> bool:
    """Whether the file declares another shape; one that it leaves open is that of other inputs."""
    fixed = bool(record.shape) and min(record.shape) > 0 and -1 not in record.signature
    return fixed and record.shape != tensor.shape


def extents(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a scalar"
