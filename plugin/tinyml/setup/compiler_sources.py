# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The compiler's own source files: generated code depends on them as it depends on the model."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
SUFFIXES = (".py", ".j2")


def compiler_sources(package: Path = PACKAGE) -> list[Path]:
    """All modules and templates, in a fixed order."""
    files = (
        f"{folder}{os.sep}{name}"
        for folder, _, names in os.walk(package)  # pathlib takes four times as long, in every compilation
        for name in names
        if name.endswith(SUFFIXES)
    )
    return [Path(file) for file in sorted(files)]


def fingerprint(package: Path = PACKAGE) -> str:
    """One hash over all of them, for builds that compare values instead of file times."""
    digest = hashlib.sha256()
    for path in compiler_sources(package):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
