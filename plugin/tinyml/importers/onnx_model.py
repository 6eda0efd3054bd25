# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From the bytes of an .onnx file to a checked ModelProto with all of its data inside."""

from __future__ import annotations

import onnx

from tinyml.base.errors import ModelError
from tinyml.importers.model_file import ModelFile
from tinyml.importers.onnx_check import check
from tinyml.importers.onnx_outputs import keep_outputs
from tinyml.importers.onnx_proto import all_tensors, decoded, entries_of
from tinyml.importers.other_formats import recognise

OLDEST_OPSET = 7


def parse(file: ModelFile) -> onnx.ModelProto:
    """The model, or a message that says what the file is instead."""
    model = decoded(file.content)
    if not model.graph.node and not model.graph.output:
        what, hint = recognise(file.content, str(file.path))
        raise ModelError(f"{file.path} is not a model: {what}", hint)
    check(model, file.path)
    for tensor in all_tensors(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _take_in(tensor, file)
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if opset and opset < OLDEST_OPSET:
        raise ModelError(
            f"{file.path} uses ONNX opset {opset}; {OLDEST_OPSET} is the oldest supported",
            "convert it with onnx.version_converter.convert_version(model, 13)",
        )
    if file.outputs:
        keep_outputs(model, file.outputs)
    return model


def _take_in(tensor: onnx.TensorProto, file: ModelFile) -> None:
    """Put the data of a tensor where those of others are."""
    entries = entries_of(tensor)
    data = file.beside.get(entries.get("location", ""), b"")
    try:
        start = int(entries.get("offset", "0") or "0")
        length = int(entries.get("length", "") or len(data) - start)
    except ValueError:
        start = length = -1
    if start < 0 or length < 0 or start + length > len(data):
        raise ModelError(
            f"{file.path}: its external data cannot be read: tensor {tensor.name!r} is not inside "
            f"{entries.get('location', '')!r}, which has {len(data)} bytes",
            "copy the model and its data again",
        )
    tensor.raw_data = data[start : start + length]
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]
