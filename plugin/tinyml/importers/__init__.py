# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Model files in, IR out. Nothing after this package knows which format a model came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tinyml.importers import finite
from tinyml.importers.model_file import TFLITE_MAGIC, ModelFile, read_model, with_outputs
from tinyml.ir import Graph, Shape

__all__ = [
    "TFLITE_MAGIC",
    "ModelFile",
    "load",
    "metadata",
    "read",
    "read_model",
    "stated_lengths",
    "version",
    "with_outputs",
]


def load(
    model: Path | ModelFile,
    shapes: Mapping[str, Shape] | None = None,
    bounds: Mapping[str, int] | None = None,
) -> Graph:
    """Read a model; its content decides the format, and the file name is only for messages."""
    return read(read_model(model), shapes, bounds)


def read(
    file: ModelFile,
    shapes: Mapping[str, Shape] | None = None,
    bounds: Mapping[str, int] | None = None,
    unrolled: bool = False,
) -> Graph:
    """``load`` for a model whose bytes are here already. ``unrolled``: no loop with known steps stays one."""
    graph = _read(file, dict(shapes or {}), dict(bounds or {}), unrolled)
    finite.check(graph)
    return graph


def _read(file: ModelFile, shapes: dict[str, Shape], bounds: dict[str, int], unrolled: bool) -> Graph:
    if file.is_tflite:
        from tinyml.importers import tflite_graph

        return tflite_graph.read(file.path, file.content, shapes, file.outputs, bounds, unrolled)
    from tinyml.importers import growing, onnx_graph, onnx_model

    found = growing.fixed(onnx_model.parse(file), shapes, bounds)
    graph = onnx_graph.read(found.model, file.path.stem, found.shapes, found.bounds, unrolled)
    return replace(graph, notes=(*found.notes, *graph.notes)) if found.notes else graph


def stated_lengths(
    file: ModelFile, shapes: Mapping[str, Shape], bounds: Mapping[str, int]
) -> tuple[Mapping[str, Shape], Mapping[str, int]]:
    """Settings of a model whose caches grow, with their lengths among the shapes instead of the bounds."""
    if file.is_tflite:
        return shapes, bounds
    from tinyml.importers import growing, onnx_model

    return growing.stated_lengths(onnx_model.parse(file), shapes, bounds)


def metadata(file: ModelFile) -> dict[str, str]:
    """What the training wrote into the file about itself: an ONNX model's metadata."""
    from tinyml.importers import onnx_model

    if file.is_tflite:
        return {}
    return {item.key: item.value for item in onnx_model.parse(file).metadata_props}


def version(file: ModelFile) -> int:
    """The version that the training gave the model, as far as 32 bits; 0 if it gave none."""
    from tinyml.importers import onnx_model

    return 0 if file.is_tflite else max(0, onnx_model.parse(file).model_version) & 0xFFFFFFFF
