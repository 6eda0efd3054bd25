# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples and labels in .npz and .npy files."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.datasets.arrays import UNREADABLE, read_numpy
from tinyml.ir import Array

FORMATS = ".npz, .npy, .csv, or a folder of images or WAV files"


def read(path: Path) -> dict[str, Array]:
    """The arrays of the file by name; the array of a .npy file is called ""."""
    try:
        return read_numpy(path)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        raise ConfigError(f"{path} is not a .npz or .npy file", f"samples are {FORMATS}") from None
