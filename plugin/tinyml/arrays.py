# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays from and to .npz files, by tensor name or by position."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tinyml.errors import ConfigError, writing
from tinyml.ir import Array, DType, Graph, Tensor


def load_inputs(path: Path | None, graph: Graph) -> dict[str, Array]:
    """The inputs of a model by tensor name; without a file, a fixed pattern."""
    tensors = [graph.tensors[name] for name in graph.inputs]
    if path is None:
        return {tensor.name: pattern(tensor) for tensor in tensors}
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ConfigError(
                f"{path} holds one array without a name", "save it with numpy.savez(file, in0=array)"
            )
        with file:
            stored = {key: file[key] for key in file.files}
    except FileNotFoundError:
        raise ConfigError(f"there is no input file {path}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise ConfigError(
            f"{path} is not a .npz file", "save one with numpy.savez(file, in0=array)"
        ) from None
    return {tensor.name: _pick(stored, tensor, i, path) for i, tensor in enumerate(tensors)}


def _pick(stored: Mapping[str, Array], tensor: Tensor, index: int, path: Path) -> Array:
    array = stored.get(tensor.name, stored.get(f"in{index}"))
    if array is None:
        raise ConfigError(
            f"{path} has no array for the input {tensor.name!r} (it has {', '.join(stored) or 'nothing'})",
            f"call it {tensor.name!r} or in{index}",
        )
    if array.size != tensor.elements:
        raise ConfigError(
            f"{path}: the array for {tensor.name!r} has shape {array.shape}; the model takes {tensor.shape}"
        )
    converted = array
    if castable := np.can_cast(array.dtype, tensor.dtype.numpy, "same_kind"):
        converted = array.astype(tensor.dtype.numpy)
    if not castable or (array.dtype.kind in "iu" and not np.array_equal(converted, array)):
        raise ConfigError(
            f"{path}: the array for {tensor.name!r} is {array.dtype}; the model takes {tensor.dtype.value}"
        )
    return converted.reshape(tensor.shape)


def save_outputs(path: Path, graph: Graph, outputs: Mapping[str, Array]) -> None:
    """Save each output under its name and as out0, out1, …"""
    arrays: dict[str, Array] = {}
    for i, name in enumerate(graph.outputs):
        arrays[f"out{i}"] = outputs[name]
        arrays[name] = outputs[name]
    # not numpy.savez, which cannot save a tensor called "file"
    with writing(path), zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def pattern(tensor: Tensor) -> Array:
    """A deterministic input that visits the whole range of its type."""
    values: Array = (np.arange(tensor.elements) * 31 + 7) % 256
    if tensor.dtype.is_float:
        values = values / 127.5 - 1.0
    elif tensor.dtype is DType.BOOL:
        values = values % 2
    elif tensor.dtype.is_signed:
        values = values - 128
    return values.astype(tensor.dtype.numpy).reshape(tensor.shape)


def preview(array: Array, count: int = 8) -> str:
    """The first elements, for display."""
    values = array.reshape(-1)[:count].tolist()
    text = " ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values)
    return text + (" ..." if array.size > count else "")
