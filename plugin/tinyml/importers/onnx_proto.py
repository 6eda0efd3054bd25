# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The messages of an ONNX file: decoding them, and finding the tensors in them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from google.protobuf.message import DecodeError


def decoded(content: bytes) -> onnx.ModelProto:
    """The model in ``content``; an empty one if there is none."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        model = onnx.ModelProto()
    return model


def all_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Constants of a graph and of all graphs inside it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from all_tensors(inner)


def external_data(content: bytes) -> dict[str, str]:
    """Locations of data outside a model file, each with the name of a tensor that is there."""
    try:
        found = [t for t in all_tensors(decoded(content).graph) if t.data_location == t.EXTERNAL]
        return {entries_of(tensor).get("location", ""): tensor.name for tensor in found}
    except (UnicodeDecodeError, RecursionError):
        return {}  # the check that follows reports what is wrong


def entries_of(tensor: onnx.TensorProto) -> dict[str, str]:
    """Where the external data of a tensor are."""
    return {entry.key: entry.value for entry in tensor.external_data}
