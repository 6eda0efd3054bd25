"""Samples in .npz files: arrays by tensor name, or as in0, in1, ... and out0, out1, ..."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tinyml.errors import ConfigError
from tinyml.harness.generated import Port
from tinyml.ir import Array


def load(path: Path) -> dict[str, Array]:
    """The arrays in an .npz file."""
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            raise ConfigError(f"{path} holds one array without a name", "save it with numpy.savez")
        with content:
            return {name: content[name] for name in content.files}
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}", "an .npz file with one array per input") from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{path} cannot be read as .npz: {error}", "save it with numpy.savez") from None


def save(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file. Unlike numpy.savez any name will do, and the same arrays give the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def to_samples(inputs: Sequence[Port], arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """The samples in ``arrays``: one, or several where each array has one dimension more, in front."""
    columns = {port.name: _column(port, index, arrays) for index, port in enumerate(inputs)}
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise ConfigError(f"the inputs do not have equally many samples: {listed}")
    return [
        {name: column[index] for name, column in columns.items()}
        for index in range(next(iter(counts.values()), 1))
    ]


def from_outputs(outputs: Sequence[Port], samples: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Outputs by name and as out0, out1, ...; several samples are stacked in front."""
    arrays = {}
    for index, port in enumerate(outputs):
        values = [sample[port.name] for sample in samples]
        arrays[port.name] = arrays[f"out{index}"] = values[0] if len(values) == 1 else np.stack(values)
    return arrays


def example(inputs: Sequence[Port]) -> dict[str, Array]:
    """A sample that is always the same, for when nobody gives one: a pattern that touches every value."""
    return {port.name: _pattern(port) for port in inputs}


def _pattern(port: Port) -> Array:
    count = int(np.prod(port.shape, dtype=np.int64))
    bytes_: Array = (np.arange(count, dtype=np.int64) * 31 + 7) % 256
    if port.dtype.kind == "f":
        bytes_ = (bytes_ - 128) / 128
    elif port.dtype.kind == "i":
        bytes_ = bytes_ - 128
    elif port.dtype.kind == "b":
        bytes_ = bytes_ % 2
    return bytes_.astype(port.dtype).reshape(port.shape)


def _column(port: Port, index: int, arrays: Mapping[str, Array]) -> list[Array]:
    """All samples of one input."""
    numbered = f"in{index}"
    name = port.name if port.name in arrays else numbered
    if name not in arrays:
        raise ConfigError(
            f"there is no array for input {port.name!r}",
            f"call it {port.name!r} or {numbered!r}; there are: {', '.join(arrays) or 'none'}",
        )
    array = _as_type(port, arrays[name])
    if _squeezed(array.shape) == _squeezed(port.shape):
        return [array.reshape(port.shape)]
    if array.shape[1:] == port.shape:
        return list(array)
    raise ConfigError(
        f"input {port.name!r} has shape {array.shape}",
        f"{port.shape}, or several samples as {('N', *port.shape)}".replace("'", ""),
    )


def _squeezed(shape: Sequence[int]) -> list[int]:
    """A shape without its extents of 1: these say nothing about the order of elements."""
    return [extent for extent in shape if extent != 1]


def _as_type(port: Port, array: Array) -> Array:
    """The array in the type of the input, if that loses nothing but digits of a float."""
    if array.dtype == port.dtype:
        return array
    wider_float = port.dtype.kind == "f" and array.dtype.kind == "f"
    converted = array.astype(port.dtype) if array.dtype.kind in "fiub" else array
    if wider_float or (array.dtype.kind in "iub" and np.array_equal(converted, array)):
        return converted
    raise ConfigError(
        f"input {port.name!r} is given as {array.dtype}",
        f"the model takes {port.dtype}; real numbers are quantised as round(real / scale) + zero_point",
    )
