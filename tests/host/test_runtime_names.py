# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The C runtime is one library: no two files or headers may claim the same function."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tinyml.ops import __name__ as _registers_the_kernels
from tinyml.ops.framework.kernel import Library, kernel_table

RUNTIME = Path(__file__).parents[2] / "plugin" / "tinyml" / "runtime"
DECLARATION = re.compile(r"^(?!static)[a-z_][\w \t\*]*?\b(tinyml_\w+)\(", re.MULTILINE)


def claims(pattern: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(RUNTIME.rglob(pattern)):
        for name in dict.fromkeys(DECLARATION.findall(path.read_text())):
            found[name].append(path.name)
    return found


def test_functions_have_one_home() -> None:
    for pattern in ("*.c", "*.h"):
        found = claims(pattern)
        assert found
        assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_kernels_link_files_that_exist() -> None:
    assert _registers_the_kernels
    for kernels in kernel_table().values():
        for kernel in kernels:
            if kernel.library is Library.PORTABLE:
                assert kernel.sources, kernel.name
                for source in kernel.sources:
                    assert (RUNTIME / source).is_file(), f"{kernel.name}: {source}"


def test_static_functions_are_called_after_their_file() -> None:
    """So that a name in a map, a profile or a debugger says where it comes from."""
    pattern = re.compile(r"(?m)^static (?:inline )?(?:const )?[\w ]+?[ *](\w+)\(")
    found = {
        path.relative_to(RUNTIME).as_posix(): names
        for folder in ("slot", "host")
        for path in sorted((RUNTIME / folder).glob("*.c"))
        if (names := [name for name in pattern.findall(path.read_text()) if not name.startswith(path.stem)])
    }
    assert found == {}
