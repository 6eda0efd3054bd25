# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads files in common formats as samples for a model: one set of rules for every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets import consecutive, csv_file, image_folder, numpy_file, recordings, wav_folder
from tinyml.datasets import labels as label_files
from tinyml.datasets.scaling import real
from tinyml.datasets.shaping import Input, split, typed
from tinyml.features.settings import FrontEnd
from tinyml.ir import Array
from tinyml.settings.quantize_request import Request


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
    plain: bool = False,
) -> Samples:
    """Read and check the samples for a model with these inputs.

    For a model that keeps state, rows are consecutive runs; an axis before them counts sequences.
    ``check_labels`` gets the labels, the number of samples and the file (default: they must be classes).
    ``plain``: numbers are what the model takes, integers and infinite ones too; nothing is scaled.
    """
    if not inputs:
        raise ConfigError("the model has no inputs, so there is no data for it", "compile it as it is")
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
        scale = only.dtype.is_float and not plain
        table = {only.name: real(rows, only, request.scaling, path) if scale else rows}
    else:
        arrays = numpy_file.read(path)
        labels = arrays.pop("labels", None) if "labels" not in {i.name for i in inputs} else None
        table = {i.name: _pick(arrays, i, n, len(inputs), path) for n, i in enumerate(inputs)}
        table = {
            i.name: array if plain or not i.dtype.is_float else real(array, i, request.scaling, path)
            for i, array in ((i, table[i.name]) for i in inputs)
        }
        if stateful:
            table, starts = consecutive.flatten(table, {i.name: i.shape for i in inputs}, path)
    if request.labels is not None:
        labels = label_files.read(request.labels)
    if labels is not None:
        count = len(split(table[inputs[0].name], inputs[0], path))
        labels = (check_labels or label_files.classes)(labels, count, request.labels or path)
    samples = _samples(table, inputs, labels, path, plain)
    if stateful:
        return _pick_samples(samples, *consecutive.pick(len(samples), starts, request.samples))
    return _pick_samples(samples, spread(len(samples), request.samples))


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
    raise ConfigError(f"{path} holds neither images nor WAV files", numpy_file.FORMATS)


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


def _pick(arrays: Mapping[str, Array], wanted: Input, index: int, count: int, path: Path) -> Array:
    found = arrays.get(wanted.name, arrays.get(f"in{index}"))
    if found is None and count == 1 and len(arrays) == 1:
        found = next(iter(arrays.values()))  # whatever its name is
    if "" in arrays and count > 1:
        raise ConfigError(
            f"{path} holds one array, and the model has {count} inputs",
            "save one array for each with numpy.savez(file, in0=array, in1=array)",
        )
    if found is None:
        has = ", ".join(name or "one array without a name" for name in arrays) or "nothing"
        raise ConfigError(
            f"{path} has no array for the input {wanted.name!r} (it has {has})",
            f"call it {wanted.name!r} or in{index}: numpy.savez(file, in{index}=array)",
        )
    return found


def _samples(
    table: Mapping[str, Array], inputs: Sequence[Input], labels: Array | None, path: Path, plain: bool
) -> Samples:
    rows = {i.name: split(table[i.name], i, path) for i in inputs}
    counts = {name: len(array) for name, array in rows.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise ConfigError(f"{path} has different numbers of samples for the inputs ({listed})")
    count = next(iter(counts.values()))
    warnings = []
    for wanted in inputs:
        rows[wanted.name] = typed(rows[wanted.name], wanted, path, plain)
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


def stored_integers(path: Path, inputs: Sequence[Input]) -> set[str]:
    """The inputs for which the file has integers; text, images and sound are real numbers."""
    if not path.is_file() or path.suffix.lower() == ".csv":
        return set()
    arrays = numpy_file.read(path)
    if "labels" not in {i.name for i in inputs}:
        arrays.pop("labels", None)
    found = {i.name: _pick(arrays, i, n, len(inputs), path) for n, i in enumerate(inputs)}
    return {name for name, array in found.items() if array.dtype.kind in "iub"}


def folder_classes(path: Path) -> list[str]:
    """The names of the classes that a folder has labels for: its subfolders, in alphabetical order."""
    files = image_folder.find(path) or wav_folder.find(path)
    return image_folder.class_names(path, files)
