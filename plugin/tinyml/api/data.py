# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What data may be: a file or folder, or arrays in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

DataLike: TypeAlias = Any
"""A path (.npz, .npy, .csv, or a folder of images or WAV files), an array with one row per sample,
or arrays by input name."""


@contextmanager
def data_file(data: DataLike | None, stem: str) -> Iterator[Path | None]:
    """The data as a file or folder; arrays become a temporary file called ``stem``."""
    if data is None or isinstance(data, str | Path):
        yield None if data is None else Path(data)
        return
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        path = Path(folder) / f"{stem}.npz"
        arrays = data if isinstance(data, Mapping) else {stem: data}
        np.savez(path, **{str(key): np.asarray(value) for key, value in arrays.items()})  # type: ignore[arg-type]
        yield path
