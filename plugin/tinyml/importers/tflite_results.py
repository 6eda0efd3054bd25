# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the readers of TFLite operators return, against what the file declares."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers.tflite_file import TensorRecord
from tinyml.importers.tflite_values import type_of
from tinyml.ir import Shape, Tensor
from tinyml.ops.framework.reading import TfliteNode


def check_activation(node: TfliteNode) -> None:
    """Refuse a fused activation function that the reader of an operator did not look at."""
    if node.ignored_activation:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} has a fused activation function, which it cannot have",
            "convert the model with the activation as an operator of its own",
        )


def check_result(node: TfliteNode, record: TensorRecord, tensor: Tensor, fixed_shapes: bool) -> None:
    """Refuse a result of another type or shape than the file declares: later operators rely on both."""
    declared = type_of(record).dtype
    if tensor.dtype is not declared:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} computes {tensor.dtype.value}, and the file declares "
            f"{declared.value}",
            "convert the model so that inputs and outputs of this operator have one type",
        )
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
