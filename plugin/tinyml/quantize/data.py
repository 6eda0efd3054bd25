# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads calibration data in common file formats as samples for the model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyml.arrays import UNREADABLE, read_numpy
from tinyml.errors import ConfigError
from tinyml.features.settings import FrontEnd
from tinyml.ir import Array, DType, Shape
from tinyml.quantize import consecutive, csv_file, image_folder, recordings, wav_folder
from tinyml.quantize.request import Request, Scaling

FORMATS = ".npz, .npy, .csv, or a folder of images or WAV files"


@dataclass(frozen=True)
class Input:
    """What calibration data must match in an input of the model."""

    name: str
    shape: Shape
    dtype: DType

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Samples:
    """Arrays by input name for each run, and the class of each if known."""

    inputs: tuple[Mapping[str, Array], ...]
    labels: Array | None = None
    warnings: tuple[str, ...] = ()
    starts: frozenset[int] = frozenset({0})  # where sequences begin, for models that keep state

    def __len__(self) -> int:
        return len(self.inputs)


def load(
    request: Request,
    inputs: Sequence[Input],
    stateful: bool = False,
    check_labels: Callable[[Array, int, Path], Array] | None = None,
) -> Samples:
    """Read and check the calibration data for a model with these inputs.

    For a model that keeps state, rows are consecutive runs; an axis before them counts sequences.
    ``check_labels`` gets the labels, the number of samples and the file (default: they must be classes).
    """
    path = request.calibration
    labels: Array | None = None
    starts: Sequence[int] = (0,)
    request.check_files()
    if path.is_dir():
        table, labels, starts = _folder(path, inputs, request, stateful)
    elif path.suffix.lower() == ".csv":
        only = _only(inputs, path)
        rows, labels = csv_file.read(path, only.elements)
        rows = rows.reshape(-1, *only.shape)
        table = {only.name: _real(rows, only, request.scaling, path) if only.dtype.is_float else rows}
    else:
        arrays = _numpy(path)
        labels = arrays.pop("labels", None) if "labels" not in {i.name for i in inputs} else None
        table = {i.name: _pick(arrays, i, n, len(inputs), path) for n, i in enumerate(inputs)}
        table = {
            i.name: _real(table[i.name], i, request.scaling, path) if i.dtype.is_float else table[i.name]
            for i in inputs
        }
        if stateful:
            table, starts = consecutive.flatten(table, {i.name: i.shape for i in inputs}, path)
    if request.labels is not None:
        labels = _labels(request.labels)
    if labels is not None:
        count = len(split(table[inputs[0].name], inputs[0], path))
        labels = (check_labels or _classes)(labels, count, request.labels or path)
    samples = _samples(table, inputs, labels, path)
    if stateful:
        return _pick_samples(samples, *consecutive.pick(len(samples), starts, request.samples))
    return _pick_samples(samples, spread(len(samples), request.samples))


def scaled(array: Array, scaling: Scaling, full: float | None, path: Path) -> Array:
    """Scale numbers in 0..``full`` (None: as found) to the range, mean and deviation used in training."""
    values: Array = array.astype(np.float32)
    if scaling.low is not None and scaling.high is not None:
        top = float(full) if full is not None else float(values.max(initial=0.0))
        bottom = 0.0 if full is not None else min(0.0, float(values.min(initial=0.0)))
        if top <= bottom:
            raise ConfigError(f"{path}: all values are {top:g}", "use real data: it determines the ranges")
        values = (values - bottom) / (top - bottom) * (scaling.high - scaling.low) + scaling.low
    return values


def _folder(
    path: Path, inputs: Sequence[Input], request: Request, stateful: bool
) -> tuple[dict[str, Array], Array | None, Sequence[int]]:
    """Read no more files than requested samples: a folder may hold the whole training set.

    A label file has one label per file in the folder; then all files are read. A sequence is one sound,
    or the images of one folder.
    """
    only = _only(inputs, path)
    if request.frontend is not None:
        return _recordings(path, only, request, request.frontend)
    for reader in (image_folder, wav_folder):
        if files := reader.find(path):
            frames = stateful and reader is image_folder
            wanted = request.samples if request.labels is None else len(files)
            chosen = files[:wanted] if frames else [files[place] for place in spread(len(files), wanted)]
            array, origin = reader.read(path, chosen, only.shape, request.scaling)
            pieces = [file.parent if frames else file for file in origin]
            starts = [0, *(n for n in range(1, len(pieces)) if pieces[n] != pieces[n - 1])]
            return {only.name: array}, image_folder.classes(path, files, origin), starts
    raise ConfigError(f"{path} holds neither images nor WAV files", FORMATS)


def _recordings(
    path: Path, only: Input, request: Request, frontend: FrontEnd
) -> tuple[dict[str, Array], Array | None, Sequence[int]]:
    """A folder of recordings, through the front end; each is a sequence."""
    files = recordings.find(path, frontend)
    wanted = request.samples if request.labels is None else len(files)
    array, origin = recordings.read(
        [files[place] for place in spread(len(files), wanted)], only.shape, frontend
    )
    starts = [0, *(n for n in range(1, len(origin)) if origin[n] != origin[n - 1])]
    return {only.name: array}, image_folder.classes(path, files, origin), starts


def spread(count: int, wanted: int) -> list[int]:
    """At most ``wanted`` of ``count`` places, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).round().astype(int)).tolist()


def _only(inputs: Sequence[Input], path: Path) -> Input:
    if len(inputs) != 1:
        names = ", ".join(i.name for i in inputs)
        raise ConfigError(
            f"{path} has data for one input; the model has {len(inputs)} ({names})",
            "a .npz file with one array per input",
        )
    return inputs[0]


def _numpy(path: Path) -> dict[str, Array]:
    try:
        return read_numpy(path)
    except UNREADABLE:
        raise ConfigError(f"{path} cannot be read as calibration data", FORMATS) from None


def _pick(arrays: Mapping[str, Array], wanted: Input, index: int, count: int, path: Path) -> Array:
    found = arrays.get(wanted.name, arrays.get(f"in{index}"))
    if found is None and count == 1 and len(arrays) == 1:
        found = next(iter(arrays.values()))
    if found is None:
        has = ", ".join(name or "one array without a name" for name in arrays) or "nothing"
        raise ConfigError(
            f"{path} has no array for the input {wanted.name!r} (it has {has})",
            f"call it {wanted.name!r} or in{index}: numpy.savez(file, in{index}=array)",
        )
    return found


def _real(array: Array, wanted: Input, scaling: Scaling, path: Path) -> Array:
    """Data for a float input; integers require a range."""
    if array.dtype.kind not in "iufb":
        raise ConfigError(f"{path}: the data for {wanted.name!r} is {array.dtype}, not numbers")
    if array.dtype.kind in "iu" and scaling.low is None:
        raise ConfigError(
            f"{path}: the data for {wanted.name!r} is integers ({array.dtype}, "
            f"{_span(array)}), the model takes real numbers",
            "--range 0:1 if the training divided by the largest value, --range -1:1, or, if the numbers are "
            "right as they are, save them as float32",
        )
    full = float(np.iinfo(array.dtype).max) if array.dtype == np.uint8 else None
    values = scaled(array, scaling, full, path)
    return _normalised(values, wanted.shape, scaling, path)


def _span(array: Array) -> str:
    return f"{array.min():g}..{array.max():g}" if array.size else "empty"


def _normalised(values: Array, shape: Shape, scaling: Scaling, path: Path) -> Array:
    """Mean and deviation per channel, which is the axis that has as many entries."""
    for numbers, combine in ((scaling.mean, np.subtract), (scaling.std, np.divide)):
        if not numbers:
            continue
        spread = spread_channels(numbers, shape, path)
        if values.size % max(int(np.prod(shape)), 1) == 0 and values.size:
            values = combine(values.reshape(-1, *shape), spread[np.newaxis]).astype(np.float32)
    return values


def spread_channels(numbers: Sequence[float], shape: Shape, path: Path) -> Array:
    """One number per channel, shaped so that it broadcasts over a sample of ``shape``."""
    if len(numbers) == 1:
        return np.full([1] * len(shape), numbers[0], np.float32)
    axes = [axis for axis, size in enumerate(shape) if size == len(numbers)]
    if not axes:
        raise ConfigError(
            f"{path}: mean or std has {len(numbers)} numbers; no dimension of {text(shape)} has that size",
            "one number, or one for each channel",
        )
    axis = 1 if 1 in axes else axes[-1]
    wide = [1] * len(shape)
    wide[axis] = -1
    return np.asarray(numbers, np.float32).reshape(wide)


def split(array: Array, wanted: Input, path: Path) -> Array:
    """The array as (count, *shape of the input), or a message that says which shapes would do."""
    shape = wanted.shape
    body = [size for size in shape if size != 1]
    if array.size and array.size % max(wanted.elements, 1) == 0:
        if array.shape == shape:
            return array[np.newaxis]
        if array.shape[1:] == shape or (shape[:1] == (1,) and array.shape[1:] == shape[1:]):
            return array.reshape(-1, *shape)
        if [size for size in array.shape[1:] if size != 1] == body:
            return array.reshape(-1, *shape)  # axes of extent 1 omitted or added
    row = shape[1:] if shape[:1] == (1,) else shape
    hint = f"an array of shape N{'x' if row else ''}{text(row) if row else ''}, one row per sample"
    inner = array.shape[1:]
    if not array.size:
        raise ConfigError(f"{path} has no samples for {wanted.name!r}", hint)
    if int(np.prod(inner)) == wanted.elements:
        hint = f"array.reshape({', '.join(map(str, (-1, *row)))}), if the order of the numbers is right"
    for order in itertools.permutations(range(len(inner))):
        if tuple(inner[axis] for axis in order) == row and order != tuple(range(len(inner))):
            axes = ", ".join(str(axis + 1) for axis in order)
            hint = f"array.transpose(0, {axes}): the dimensions are in a different order"
            break
    raise ConfigError(
        f"{path}: the data for {wanted.name!r} has shape {text(array.shape)}; the model takes {text(shape)}",
        hint,
    )


def text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _labels(path: Path) -> Array:
    """Class numbers: .npy, .npz (its only array, or "labels"), .csv or text with one number per line."""
    if path.suffix.lower() in (".npy", ".npz"):
        arrays = _numpy(path)
        found = arrays.get("labels", next(iter(arrays.values())) if len(arrays) == 1 else None)
        if found is None:
            raise ConfigError(
                f"{path} has several arrays ({', '.join(arrays)})", "call the right one 'labels'"
            )
        return found
    return csv_file.column(path)


def _samples(
    table: Mapping[str, Array], inputs: Sequence[Input], labels: Array | None, path: Path
) -> Samples:
    rows = {i.name: split(table[i.name], i, path) for i in inputs}
    counts = {name: len(array) for name, array in rows.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise ConfigError(f"{path} has different numbers of samples for the inputs ({listed})")
    count = next(iter(counts.values()))
    warnings = []
    for wanted in inputs:
        rows[wanted.name] = _typed(rows[wanted.name], wanted, path)
        if wanted.dtype.is_float and np.ptp(rows[wanted.name]) == 0:
            warnings.append(f"all calibration values of {wanted.name} are equal: its range is a guess")
    if count < 16:
        warnings.append(f"only {count} calibration samples: ranges may be too narrow (100 are typical)")
    samples = tuple({name: array[index] for name, array in rows.items()} for index in range(count))
    return Samples(samples, labels, tuple(warnings))


def _pick_samples(all_: Samples, chosen: Sequence[int], starts: Sequence[int] = (0,)) -> Samples:
    """A selection of samples in this order; ``starts`` are indices into the selection."""
    picked = tuple(all_.inputs[index] for index in chosen)
    labels = None if all_.labels is None else all_.labels[list(chosen)]
    return Samples(picked, labels, all_.warnings, frozenset(starts))


def _typed(array: Array, wanted: Input, path: Path) -> Array:
    if wanted.dtype.is_float:
        values = array.astype(wanted.dtype.numpy)
        if not np.isfinite(values).all():
            bad = int(np.argwhere(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0, 0])
            raise ConfigError(
                f"{path}: the data for {wanted.name!r} contains values that are not finite, "
                f"the first in sample {bad}",
                "remove such samples",
            )
        return values
    with np.errstate(invalid="ignore"):
        values = array.astype(wanted.dtype.numpy)
    if not np.array_equal(values, array):
        raise ConfigError(
            f"{path}: the data for {wanted.name!r} does not fit {wanted.dtype.value} "
            f"({_span(array)}, {array.dtype})"
        )
    return values


def _classes(labels: Array, count: int, path: Path) -> Array:
    flat = labels
    if labels.ndim == 2 and labels.shape[0] == count and labels.shape[1] > 1:
        flat = labels.argmax(axis=1)  # one-hot
    flat = labels_as_found(flat.reshape(-1), count, path)
    if flat.dtype.kind not in "iufb" or not np.array_equal(flat, flat.astype(np.int64)):
        raise ConfigError(f"{path}: labels must be whole numbers", csv_file.CLASSES)
    return flat.astype(np.int64)


def labels_as_found(labels: Array, count: int, path: Path) -> Array:
    """Labels of any kind, one for each sample; those of sequences follow one another."""
    if labels.ndim > 1 and len(labels) != count and labels.shape[0] * labels.shape[1] == count:
        labels = labels.reshape(count, *labels.shape[2:])
    if labels.ndim == 0 or len(labels) != count:
        found = len(labels) if labels.ndim else 1
        raise ConfigError(f"{path} has {found} labels for {count} samples", "one for each sample")
    return labels


def stored_integers(path: Path, inputs: Sequence[Input]) -> set[str]:
    """The inputs for which the file has integers; text, images and sound are real numbers."""
    if not path.is_file() or path.suffix.lower() == ".csv":
        return set()
    arrays = _numpy(path)
    if "labels" not in {i.name for i in inputs}:
        arrays.pop("labels", None)
    found = {i.name: _pick(arrays, i, n, len(inputs), path) for n, i in enumerate(inputs)}
    return {name for name, array in found.items() if array.dtype.kind in "iub"}


def folder_classes(path: Path) -> list[str]:
    """The names of the classes that a folder has labels for: its subfolders, in alphabetical order."""
    files = image_folder.find(path) or wav_folder.find(path)
    return image_folder.class_names(path, files)
