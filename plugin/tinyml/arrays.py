# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays from and to .npz files, by tensor name or by position."""

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

from tinyml import limits, whole_files
from tinyml.errors import ConfigError
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


def load_samples(path: Path | None, graph: Graph) -> list[dict[str, Array]]:
    """The inputs of consecutive runs by tensor name; without a file, one run on a fixed pattern.

    A .npy file holds the array of the only input. An array has the shape of its input, or one row for each
    run: for an input of 1x49x40, N runs are an array of Nx49x40 or Nx1x49x40.
    """
    tensors = [graph.tensors[name] for name in graph.inputs]
    if path is None:
        return [pattern_inputs(graph)]
    try:
        stored = read_numpy(path)
    except FileNotFoundError:
        raise ConfigError(f"there is no input file {path}") from None
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno is not None and not path.is_dir():
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        raise ConfigError(
            f"{path} is not a .npz or .npy file", "save one with numpy.savez(file, in0=array)"
        ) from None
    if "" in stored:
        if len(tensors) != 1:
            raise ConfigError(
                f"{path} holds one array, and the model has {len(tensors)} inputs",
                "save one array for each with numpy.savez(file, in0=array, in1=array)",
            )
        stored = {"in0": stored[""]}
    rows = {
        tensor.name: _rows(stored, tensor, i, path, tensor.name in graph.open_inputs)
        for i, tensor in enumerate(tensors)
    }
    counts = {name: len(array) for name, array in rows.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} for {name!r}" for name, count in counts.items())
        raise ConfigError(
            f"{path} has different numbers of rows: {found}", "the same number of rows for each input"
        )
    return [dict(zip(rows, sample, strict=True)) for sample in zip(*rows.values(), strict=True)]


def _rows(stored: Mapping[str, Array], tensor: Tensor, index: int, path: Path, is_open: bool) -> Array:
    array = stored.get(tensor.name, stored.get(f"in{index}"))
    if array is None:
        raise ConfigError(
            f"{path} has no array for the input {tensor.name!r} (it has {', '.join(stored) or 'nothing'})",
            f"call it {tensor.name!r} or in{index}",
        )
    count, rest = divmod(array.size, max(tensor.elements, 1))
    rows = array.shape[:1] in ((count,), (count * tensor.shape[0],)) if tensor.shape else array.ndim == 1
    if rest or not count or (count > 1 and not rows):
        shape = ", ".join(map(str, tensor.shape))
        hint = f"shape (N, {shape}) for N runs" if shape else "shape (N,) for N runs"
        if is_open and array.ndim == len(tensor.shape) and array.size:
            hint += "; the model leaves its shape open, so for one run on all of it "
            hint += f"--shape {tensor.name}={'x'.join(map(str, array.shape))}"
        raise ConfigError(
            f"{path}: the array for {tensor.name!r} has shape {array.shape}; the model takes {tensor.shape}",
            hint,
        )
    if array.dtype.kind == "f" and is_quantized(tensor):  # as `evaluate` and the firmware do it
        array = quantized(array, tensor)
    converted = array
    if castable := np.can_cast(array.dtype, tensor.dtype.numpy, "same_kind"):
        with np.errstate(over="ignore"):
            converted = array.astype(tensor.dtype.numpy)
        if tensor.dtype.is_float and np.isinf(converted).sum() > np.isinf(array).sum():
            raise ConfigError(
                f"{path}: the array for {tensor.name!r} has values beyond {tensor.dtype.value}",
                f"at most {np.finfo(tensor.dtype.numpy).max:g}",
            )
    if not castable or (array.dtype.kind in "iu" and not np.array_equal(converted, array)):
        raise ConfigError(
            f"{path}: the array for {tensor.name!r} is {array.dtype}; the model takes {tensor.dtype.value}"
        )
    return converted.reshape(count, *tensor.shape)


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
