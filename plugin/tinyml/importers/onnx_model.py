# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From the bytes of an .onnx file to a checked ModelProto with all of its data inside."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import load_external_data_for_model, uses_external_data

from tinyml.errors import ModelError

OLDEST_OPSET = 7


def parse(path: Path, content: bytes) -> onnx.ModelProto:
    """The model; otherwise an error that says what the file is."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        model = onnx.ModelProto()
    if not model.graph.node and not model.graph.output:
        raise ModelError(
            f"{path} is not a model: {_resembles(content)}",
            "give an ONNX (.onnx) or TensorFlow Lite (.tflite) file",
        )
    _load_external_data(model, path)
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if opset and opset < OLDEST_OPSET:
        raise ModelError(
            f"{path} uses ONNX opset {opset}; {OLDEST_OPSET} is the oldest supported",
            "convert it with onnx.version_converter.convert_version(model, 13)",
        )
    return model


def _resembles(content: bytes) -> str:
    if not content:
        return "the file is empty"
    if content.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer (run `git lfs pull`)"
    if content.startswith(b"PK\x03\x04"):
        return "it is a zip archive (a PyTorch or Keras file?)"
    if content.startswith(b"\x89HDF"):
        return "it is an HDF5 file (Keras?)"
    return "its content is neither ONNX nor TensorFlow Lite"


def _load_external_data(model: onnx.ModelProto, path: Path) -> None:
    """Read external data; only files inside the model's own folder are opened."""
    folder = path.resolve().parent
    for tensor in model.graph.initializer:
        if not uses_external_data(tensor):
            continue
        location = next((e.value for e in tensor.external_data if e.key == "location"), "")
        target = (folder / location).resolve()
        if not target.is_relative_to(folder):
            raise ModelError(
                f"{path}: tensor {tensor.name!r} points outside the model's folder ({location})",
                "keep external data in the model's folder",
            )
        if not target.is_file():
            raise ModelError(
                f"{path}: the data file {location} of tensor {tensor.name!r} is missing",
                f"copy it to the folder of {path.name}",
            )
    try:
        load_external_data_for_model(model, str(folder))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{path}: its external data cannot be read: {error}") from None
