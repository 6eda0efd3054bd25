# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Programs for the host from a few C files, whose objects are kept for other tests and later runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import link
from tinyml.harness.tools import host_compiler


def build_program(
    program: Path, sources: Iterable[Path], flags: Sequence[str], includes: Sequence[Path] = ()
) -> Path:
    """Compile and link ``sources`` with the same flags."""
    units = [Unit(source, "program", tuple(flags), tuple(includes)) for source in sources]
    objects = compile_all(host_compiler(), units)
    link(host_compiler(), [*flags, *map(str, objects), "-lm", "-o", str(program)])
    return program
