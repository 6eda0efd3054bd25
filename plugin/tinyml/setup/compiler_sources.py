# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The compiler's own source files: generated code depends on them as it depends on the model."""

from __future__ import annotations

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
SUFFIXES = (".py", ".j2")


def compiler_sources(package: Path = PACKAGE) -> list[Path]:
    """All modules and templates, in a fixed order."""
    return [path for path in sorted(package.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]


def fingerprint(package: Path = PACKAGE) -> str:
    """One hash over all of them, for builds that compare values instead of file times."""
    digest = hashlib.sha256()
    for path in compiler_sources(package):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
