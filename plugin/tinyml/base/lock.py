# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One process at a time writes to a folder."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process is in here with the same folder. The lock ends with the process."""
    handle = _open(folder)
    try:
        _take(handle)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _open(folder: Path) -> int:
        """Windows cannot lock a folder, so a file outside it is locked instead."""
        name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:32]
        file = Path(tempfile.gettempdir()) / f"west-tinyml-{name}.lock"
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)

    def _take(handle: int) -> None:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # tries for ten seconds
                return
            except OSError:
                continue

else:
    import fcntl

    def _open(folder: Path) -> int:
        return os.open(folder, os.O_RDONLY)

    def _take(handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            return  # a file system without locks, such as some network shares: as good as it gets there
