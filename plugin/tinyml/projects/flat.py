# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""C sources in one folder without subfolders, for build systems that copy nothing else.

ESPHome copies the files of a component's folder, compiles them with one include folder, and includes every
header in a C++ source. So each file gets a name of its own, ``#include`` lines follow, and headers that are C
are empty in C++.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

INCLUDE = re.compile(r'^(\s*#\s*include\s+)(<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
GUARD = "#ifndef __cplusplus /* a header of C, which ESPHome includes in C++, too */\n"


def reached(files: Mapping[str, str], roots: Iterable[str]) -> list[str]:
    """The files that ``roots`` include, directly or not, and these themselves."""
    found: dict[str, None] = {}
    open_ = list(roots)
    while open_:
        path = open_.pop()
        if path not in found:
            found[path] = None
            open_ += [other for _, other in _included(files, path)]
    return sorted(found)


def flat_name(path: str) -> str:
    """``runtime/conv/conv_s8.c`` is ``conv_conv_s8.c``, ``tinyml/conv.h`` is ``tinyml_conv.h``."""
    return path.removeprefix("runtime/").replace("/", "_")


def flattened(
    files: Mapping[str, str], paths: Iterable[str], in_cpp: Iterable[str], elsewhere: str = ""
) -> dict[str, str]:
    """The files at ``paths`` by their new names; those at ``in_cpp`` are headers for C++, too.

    ``elsewhere`` is the folder, as C includes it, of the files that are not among ``paths``.
    """
    here, shared = set(paths), set(in_cpp)
    return {flat_name(path): _rewritten(files, path, here, shared, elsewhere) for path in sorted(here)}


def _rewritten(files: Mapping[str, str], path: str, here: set[str], shared: set[str], elsewhere: str) -> str:
    names = {
        line: f'"{"" if other in here else elsewhere}{flat_name(other)}"'
        for line, other in _included(files, path)
    }
    text = INCLUDE.sub(lambda match: match[1] + names.get(match[2], match[2]), files[path])
    if path.endswith(".h") and path not in shared:
        text = f"{GUARD}{text}#endif\n"
    return text


def _included(files: Mapping[str, str], path: str) -> list[tuple[str, str]]:
    """The includes of a file that are among ``files``: as they are spelt, and where they lead."""
    found = []
    for match in INCLUDE.finditer(files[path]):
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[4])) if match[4] else ""
        for place in (beside, match[3] or match[4]):
            if place in files:
                found.append((match[2], place))
                break
    return found
