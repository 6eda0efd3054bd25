# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Round the weights of published int8 models to four bits: python -m tools.four_bit_models FOLDER [NAME ...]

The files stay TensorFlow Lite models with int8 tensors, in which every weight of a filter is one of the
fifteen values -7 to 7 times a larger scale. They serve to measure kernels, not accuracy: nothing is trained
or calibrated again.
"""

from __future__ import annotations

import argparse
import os
import struct
from pathlib import Path

import numpy as np
import tflite

from tinyml.ir import Array

MODELS = ("mlperf_ad_int8", "mlperf_kws_int8", "mlperf_resnet_int8", "mlperf_vww_int8", "mcunet_vww_int8")
LARGEST = 7
AXES = {
    tflite.BuiltinOperator.CONV_2D: 0,
    tflite.BuiltinOperator.DEPTHWISE_CONV_2D: 3,
    tflite.BuiltinOperator.FULLY_CONNECTED: 0,
}
"""Operators whose second input has weights, and the axis of those that counts output channels."""


def rounded(model: bytes) -> bytes:
    """The model with four-bit weights in its convolutions and dense layers, and one scale per filter."""
    data = bytearray(model)
    root = tflite.Model.GetRootAsModel(data, 0)
    graph = root.Subgraphs(0)
    added = bytearray(-len(data) % 8)  # what will follow the file's own bytes
    done: set[int] = set()
    for i in range(graph.OperatorsLength()):
        node = graph.Operators(i)
        code = root.OperatorCodes(node.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        weights = graph.Tensors(node.Inputs(1)) if kind in AXES else None
        if weights is None or weights.Type() != tflite.TensorType.INT8:
            continue
        if node.Inputs(1) in done:
            raise ValueError(f"layer {i} shares its weights with another one")
        done.add(node.Inputs(1))
        values = _values(root, weights, np.int8).reshape(weights.ShapeAsNumpy())
        factors = _round(values, AXES[kind])
        _scale(data, added, weights, factors)
        if node.InputsLength() > 2 and node.Inputs(2) >= 0:
            bias = graph.Tensors(node.Inputs(2))
            sums = _values(root, bias, np.int32)
            sums[:] = np.rint(sums / factors).astype(np.int32)
            _scale(data, added, bias, factors)
    return bytes(data + added)


def _round(values: Array, axis: int) -> Array:
    """Round weights in place; returns for each filter how much its scale grew."""
    filters = np.moveaxis(values, axis, 0)
    largest = np.abs(filters.reshape(len(filters), -1).astype(np.int32)).max(axis=1)
    factors = np.maximum(largest, 1) / LARGEST
    spread = factors.reshape(-1, *[1] * (filters.ndim - 1))
    filters[:] = np.rint(filters / spread).astype(np.int8)
    return factors


def _values(root: tflite.Model, tensor: tflite.Tensor, dtype: type) -> Array:
    """The constant in the file's own memory, so that it can be changed."""
    return root.Buffers(tensor.Buffer()).DataAsNumpy().view(dtype)


def _scale(data: bytearray, added: bytearray, tensor: tflite.Tensor, factors: Array) -> None:
    """Multiply a tensor's scales; where it had one for all filters, vectors are added to the file."""
    quant = tensor.Quantization()
    if quant.ScaleLength() == len(factors):
        quant.ScaleAsNumpy()[:] *= factors.astype(np.float32)
        return
    scales = (quant.ScaleAsNumpy() * factors).astype("<f4")
    zeros = np.zeros(len(factors), "<i8")
    for slot, values in ((8, scales), (10, zeros)):  # QuantizationParameters.scale, .zero_point
        place = quant._tab.Pos + quant._tab.Offset(slot)
        added += bytes(-(len(data) + len(added) + 4) % 8)
        struct.pack_into("<I", data, place, len(data) + len(added) - place)
        added += struct.pack("<I", len(factors)) + values.tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the models go, as NAME_w4.tflite")
    parser.add_argument("name", nargs="*", default=MODELS, help=f"of {', '.join(MODELS)}")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.name:
        source = Path(os.environ["TINYML_MODELS"]) / f"{name}.tflite"
        to = args.folder / f"{name}_w4.tflite"
        to.write_bytes(rounded(source.read_bytes()))
        print(to)


if __name__ == "__main__":
    main()
