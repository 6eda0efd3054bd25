# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of tensors: in .npz and .npy files, as real numbers or stored integers, and as text."""

from __future__ import annotations

import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tinyml.base import limits, whole_files
from tinyml.base.errors import ConfigError
from tinyml.ir import Array, DType, Graph, Tensor

UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy raises on files that are not its own: it reads their headers as Python."""


def read_numpy(path: Path) -> dict[str, Array]:
    """The arrays of a .npz file by name, or that of a .npy file as ""; raises one of UNREADABLE."""
    with path.open("rb") as stream:
        check_bytes(path, os.fstat(stream.fileno()).st_size)
        if stream.read(2) == b"PK":
            with zipfile.ZipFile(stream) as archive:
                check_bytes(path, sum(info.file_size for info in archive.infolist()))
        stream.seek(0)
        file = np.load(stream, allow_pickle=False)
        if isinstance(file, np.ndarray):
            return {"": file}
        members = {key: file[key] for key in file.files}
        # numpy returns the bytes of a member that does not begin as an array does.
        return {key: member for key, member in members.items() if isinstance(member, np.ndarray)}


def check_bytes(path: Path, found: int) -> None:
    """Refuse data that would fill the memory, packed or not."""
    allowed = limits.limit("samples_bytes")
    if found > allowed:
        raise ConfigError(
            f"{path} has {found:,} bytes of data, and at most {allowed:,} are allowed",
            f"fewer samples, or {limits.VARIABLE}SAMPLES_BYTES={found} in the environment",
        )


def pattern_inputs(graph: Graph) -> dict[str, Array]:
    """A fixed pattern for each input of a model, by tensor name."""
    return {name: pattern(graph.tensors[name]) for name in graph.inputs}


def save_outputs(path: Path, graph: Graph, runs: Sequence[Mapping[str, Array]]) -> None:
    """Each output under its name and as out0, out1, …; those of several runs as rows of one array."""
    arrays: dict[str, Array] = {}
    for i, name in enumerate(graph.outputs):
        arrays[f"out{i}"] = arrays[name] = joined([outputs[name] for outputs in runs])
    whole_files.save(path, packed(arrays))


def packed(arrays: Mapping[str, Array]) -> bytes:
    """The content of a .npz file. ``numpy.savez`` cannot save a tensor called "file"."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for key, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()


def joined(rows: Sequence[Array]) -> Array:
    """One array; a first axis of 1, as models have it, becomes the axis of the rows."""
    if len(rows) == 1:
        return rows[0]
    return np.concatenate(rows) if rows[0].shape[:1] == (1,) else np.stack(rows)


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


def preview(array: Array, count: int = 8, short: int = 24) -> str:
    """The elements for display: all of a short array, the first ``count`` of others."""
    shown = array.size if array.size <= short else count
    values = array.reshape(-1)[:shown].tolist()
    text = " ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values)
    return text + (" ..." if array.size > shown else "")


def top_classes(array: Array, tensor: Tensor, labels: Sequence[str], count: int = 3) -> str:
    """The largest of the scores of one sample, as ``7 (0.93), ...``; empty if these are not such scores."""
    if array.ndim != 2 or array.shape[0] != 1 or array.size < 2 or array.dtype.kind not in "fiu":
        return ""
    scores = real(array, tensor).reshape(-1)
    best = np.argsort(-scores, kind="stable")[:count]
    names = labels if len(labels) == array.size else [str(index) for index in range(array.size)]
    return ", ".join(f"{names[index]} ({scores[index]:.4g})" for index in best)


def is_quantized(tensor: Tensor) -> bool:
    """Whether stored integers represent real numbers."""
    return tensor.quant is not None and not tensor.quant.per_channel and not tensor.dtype.is_float


def real(array: Array, tensor: Tensor) -> Array:
    """The real numbers that stored values represent."""
    values: Array = array.astype(np.float64)
    if tensor.quant is None or not is_quantized(tensor):
        return values
    return (values - tensor.quant.zero_point) * tensor.quant.scale


def stored(values: Array, tensor: Tensor) -> Array:
    """Real numbers in the type, quantisation and shape of a tensor."""
    return quantized(values, tensor).reshape(tensor.shape)


def quantized(values: Array, tensor: Tensor) -> Array:
    """Real numbers in the type and quantisation of a tensor, in a shape of their own."""
    if tensor.quant is not None and is_quantized(tensor):
        steps = np.rint(values.astype(np.float64) / tensor.quant.scale) + tensor.quant.zero_point
        values = np.clip(steps, *tensor.dtype.limits)
    found: Array = values.astype(tensor.dtype.numpy)
    return found
