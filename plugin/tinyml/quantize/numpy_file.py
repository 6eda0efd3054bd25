# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration data and labels in .npz and .npy files."""

from __future__ import annotations

from pathlib import Path

from tinyml.arrays import UNREADABLE, read_numpy
from tinyml.errors import ConfigError
from tinyml.ir import Array

FORMATS = ".npz, .npy, .csv, or a folder of images or WAV files"


def read(path: Path) -> dict[str, Array]:
    """The arrays of the file by name; the array of a .npy file is called ""."""
    try:
        return read_numpy(path)
    except UNREADABLE:
        raise ConfigError(f"{path} cannot be read as calibration data", FORMATS) from None
