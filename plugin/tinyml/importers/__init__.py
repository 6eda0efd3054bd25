# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Model files in, IR out. Nothing after this package knows which format a model came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tinyml.errors import ModelError
from tinyml.ir import Graph, Shape

TFLITE_MAGIC = b"TFL3"


def load(path: Path, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """Read a model; the content determines the format, the file name is for messages."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"there is no model file {path}", "check the path") from None
    except IsADirectoryError:
        raise ModelError(f"{path} is a folder, not a model file", "name the .onnx or .tflite in it") from None
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None
    return read(path, content, shapes)


def read(path: Path, content: bytes, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """``load`` for a model in memory; ``path`` gives its name and the folder of external weights."""
    if content[4:8] == TFLITE_MAGIC:
        from tinyml.importers import tflite_graph

        return tflite_graph.read(path, content, dict(shapes or {}))
    from tinyml.importers import onnx_graph, onnx_model

    return onnx_graph.read(onnx_model.parse(path, content), path.stem, dict(shapes or {}))


def metadata(path: Path) -> dict[str, str]:
    """What the training wrote into the file about itself: an ONNX model's metadata."""
    from tinyml.importers import onnx_model

    content = path.read_bytes()
    if content[4:8] == TFLITE_MAGIC:
        return {}
    return {item.key: item.value for item in onnx_model.parse(path, content).metadata_props}
