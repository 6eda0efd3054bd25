# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model file, read once: what is hashed, quantised and compiled are the same bytes.

A file that is replaced while the compiler runs is either all old or all new; never old weights under the
hash of the new ones.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path

from tinyml.base import limits
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.other_formats import SAVED_MODEL

TFLITE_MAGIC = b"TFL3"


@dataclass(frozen=True)
class ModelFile:
    """The bytes of a model. ``path`` is its name in messages; nothing is read from there again."""

    path: Path
    content: bytes
    beside: Mapping[str, bytes] = field(default_factory=dict)  # external data of ONNX, by location
    outputs: tuple[str, ...] = ()  # those to keep, with what they need; none: all

    @property
    def files(self) -> list[Path]:
        """Every file that was read: a build depends on all of them."""
        folder = self.path.resolve().parent
        return [self.path, *(folder / location for location in sorted(self.beside))]

    @property
    def is_tflite(self) -> bool:
        return self.content[4:8] == TFLITE_MAGIC

    @cached_property
    def sha256(self) -> str:
        """Of the file; where there is external data, of the file and all of it."""
        if not self.beside:
            return hashlib.sha256(self.content).hexdigest()
        digest = hashlib.sha256(hashlib.sha256(self.content).digest())
        for location in sorted(self.beside):
            digest.update(location.encode() + b"\0" + hashlib.sha256(self.beside[location]).digest())
        return digest.hexdigest()


def read_model(model: Path | ModelFile) -> ModelFile:
    """Read a model and the files beside it that hold its weights; one that was read stays as it is."""
    if isinstance(model, ModelFile):
        return model
    path = model
    content = _content(path, f"there is no model file {path}", "check the path")
    if content[4:8] == TFLITE_MAGIC or b"location" not in content:
        return ModelFile(path, content)
    from tinyml.importers.onnx_proto import external_data

    folder = path.resolve().parent
    beside: dict[str, bytes] = {}
    total = len(content)
    for location, tensor in external_data(content).items():
        target = _inside(folder, location, path, tensor)
        if _is_folder(target):
            raise ModelError(
                f"{path}: tensor {tensor!r} has its data in {location!r}, which is a folder, not a file",
                "export the model again",
            )
        missing = f"{path}: the data file {location} of tensor {tensor!r} is missing"
        beside[location] = _content(target, missing, f"copy it to the folder of {path.name}")
        total += len(beside[location])
        limits.check("file_bytes", total, str(path))
    return ModelFile(path, content, beside)


def with_outputs(file: ModelFile, outputs: Sequence[str]) -> ModelFile:
    """The model of which only these outputs are wanted; none: as it is."""
    return replace(file, outputs=tuple(outputs)) if outputs else file


def _inside(folder: Path, location: str, path: Path, tensor: str) -> Path:
    """The file at a location, which has to be in the model's own folder."""
    try:
        target = (folder / location).resolve()
    except (OSError, ValueError, RuntimeError):
        target = folder.parent
    if not target.is_relative_to(folder):
        raise ModelError(
            f"{path}: tensor {tensor!r} points outside the model's folder ({location!r})",
            "keep external data in the folder of the model",
        )
    return target


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _content(path: Path, missing: str, hint: str) -> bytes:
    """All bytes of a regular file that is not larger than the limit."""
    try:
        # A pipe that nobody writes to would keep a plain open() waiting for ever.
        with open(path, "rb", opener=_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{path} is not a file", "give an .onnx or .tflite file")
            limits.check("file_bytes", status.st_size, str(path))
            return stream.read()
    except FileNotFoundError:
        raise ModelError(missing, hint) from None
    except IsADirectoryError:
        if (path / "saved_model.pb").is_file():
            hint = SAVED_MODEL.format(name=path, stem=path.name)
            raise ModelError(f"{path} is a SavedModel of TensorFlow", hint) from None
        raise ModelError(f"{path} is a folder, not a model file", "name the .onnx or .tflite in it") from None
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:  # a NUL byte, or a character that the file system does not have
        raise ModelError(f"{str(path)!r} is not a file name", "check the path") from None
