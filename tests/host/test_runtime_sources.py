# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The rules of runtime/README.md: names of static functions, includes, and the table of kernels."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.host.test_architecture import circles
from tinyml.cores.targets import TARGETS
from tinyml.ops import __name__ as _registers_the_kernels
from tinyml.ops.framework.kernel import Library, kernel_table

RUNTIME = Path(__file__).parents[2] / "plugin" / "tinyml" / "runtime"
FILES = sorted(RUNTIME.rglob("*.[ch]"))
KERNELS = [
    path for path in FILES if path.parent.parent == RUNTIME and path.parent.name not in ("slot", "host")
]
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STATIC = re.compile(
    r"^[ \t]*(?:[\w() ,]*\s)?(?:static|NOT_INLINED)\s[^;={}]*?\b(\w[\w#]*)\(([^;{}]*?\))\s*(\{|;)",
    re.MULTILINE,
)
MADE = re.compile(r"^#define (\w+)\((\w+)[^)]*\)(?:.*\\\n)+.*", re.MULTILINE)
TYPE = re.compile(r"_(s8|s16|f16|f32)$")
PART = re.compile(r"_(armv6m|armv7m)$")  # of a kernel, for one architecture


def code_of(path: Path) -> str:
    return COMMENT.sub("", path.read_text()).replace("\\\n", " \n")


def static_functions(path: Path) -> Iterator[tuple[str, bool]]:
    """Names of static functions, and whether each is defined here; macros that make them are expanded."""
    text = code_of(path)
    for match in STATIC.finditer(re.sub(r"__attribute__\(\([\w, ]*\)\)|TINYML_ASSEMBLY", "", text)):
        name, defined = match[1], match[3] == "{"
        if name.isupper():  # an attribute of a variable
            continue
        maker = next(
            (m for m in MADE.finditer(path.read_text()) if f"{name}(" in m[0] and m[2] in name), None
        )
        if maker is None:
            yield name, defined
        else:
            for made in re.findall(rf"^{maker[1]}\((\w+)", text, re.MULTILINE):
                yield name.replace(f"##{maker[2]}", made) if "##" in name else made, defined


@cache
def prefixes(path: Path) -> tuple[str, ...]:
    """A file's name, also without the type of its elements if no other file has the rest of the name."""
    stem = path.stem
    if PART.search(stem):
        return (PART.sub("", stem),)
    short = TYPE.sub("", stem)
    others = {other.stem for other in KERNELS if other.stem != stem and not PART.search(other.stem)}
    return (stem,) if {*others, *(TYPE.sub("", other) for other in others)} & {short} else (stem, short)


def asked_for() -> set[str]:
    """Functions that a header asks of the file that includes it, with the header's name."""
    return {
        name
        for path in FILES
        if path.suffix == ".h"
        for name in re.findall(r"\b(\w+)\(", "".join(COMMENT.findall(path.read_text())[2:3]))
        if name.startswith(prefixes(path))
    }


def misnamed(path: Path, hooks: set[str]) -> list[str]:
    mine = prefixes(path)
    return [
        name
        for name, _ in static_functions(path)
        if not name.removeprefix("tinyml_").startswith(mine)
        and name not in hooks
        and not (path.suffix == ".h" and name.startswith("tinyml_"))
    ]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_static_functions_carry_the_name_of_their_file(path: Path) -> None:
    assert misnamed(path, asked_for()) == []


def test_static_functions_are_found(tmp_path: Path) -> None:
    assert sum(len(list(static_functions(path))) for path in KERNELS) > 250
    assert "depthwise_halves_walk_any_once" in dict(
        static_functions(RUNTIME / "conv/depthwise_halves_armv6m.h")
    )
    assert "conv_filters_mve_apply_relu" in dict(static_functions(RUNTIME / "conv/conv_filters_mve_s8.h"))
    odd = tmp_path / "odd_s8.c"
    odd.write_text("static int odd_one(int a)\n{\n}\nstatic inline int\nother(int a, int b)\n{\n}\n")
    assert misnamed(odd, set()) == ["other"]


def test_static_functions_in_headers_of_the_interface() -> None:
    """A macro for slots makes functions whose names begin with that of a slot."""
    for path in (RUNTIME / "include").rglob("*.h"):
        names = [name for name, _ in static_functions(path) if not name.startswith("slot_name##")]
        assert [name for name in names if not name.startswith("tinyml_")] == []


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".h"], ids=lambda path: path.name)
def test_headers_define_the_static_functions_that_they_declare(path: Path) -> None:
    defined: Mapping[str, list[bool]] = defaultdict(list)
    for name, here in static_functions(path):
        defined[name].append(here)
    assert [name for name, places in defined.items() if not any(places)] == []


def includes() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in FILES:
        text = path.read_text()
        near = [
            (path.parent / name).resolve() for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
        ]
        far = [
            RUNTIME / "include" / name
            for name in re.findall(r"^#include <(tinyml/[^>]+)>", text, re.MULTILINE)
        ]
        assert [str(file) for file in near if not file.is_file()] == []
        found[str(path)] = {str(file) for file in (*near, *far) if file.is_file()}
    return found


def test_no_circle_of_includes() -> None:
    assert circles(includes()) == {}


CORES = {
    "any": set(TARGETS),
    "any without DSP": {name for name, target in TARGETS.items() if not target.dsp},
    "DSP": {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"},
    "DSP without Helium": {"cortex-m4", "cortex-m7", "cortex-m33"},
    "Arm without DSP": {"cortex-m0", "cortex-m3", "cortex-m33-nodsp"},
    "Helium": {"cortex-m55", "cortex-m85"},
    "Helium, computers": {"cortex-m55", "cortex-m85", "host"},
    "RISC-V": {"riscv32", "riscv32-zve32x", "riscv32-zve32f"},
    "RISC-V vectors of floats": {"riscv32-zve32f"},
    "RISC-V vectors": {"riscv32-zve32x", "riscv32-zve32f"},
}


def table() -> dict[str, str]:
    """The files in README's table of kernels, each with its core."""
    text = (RUNTIME / "README.md").read_text()
    return dict(re.findall(r"^\| `([\w/]+\.c)` \| ([^|]+?) \| [^|]+ \|$", text, re.MULTILINE))


def test_every_kernel_is_in_the_table() -> None:
    files = {path.relative_to(RUNTIME).as_posix() for path in KERNELS if path.suffix == ".c"}
    assert set(table()) == files


def test_the_table_names_the_cores_that_kernels_run_on() -> None:
    assert _registers_the_kernels
    cores = table()
    for kernels in kernel_table().values():
        for kernel in kernels:
            if kernel.library is Library.PORTABLE and not kernel.name.startswith("outside"):
                runs = {name for name, target in TARGETS.items() if kernel.runs_on(target)}
                assert runs == CORES[cores[kernel.sources[0]]], kernel.name


@pytest.mark.parametrize("word", ["pairs", "halves", "wide", "whole", "quads", "sixes", "streamed", "planes"])
def test_words_in_names_are_explained(word: str) -> None:
    text = (RUNTIME / "README.md").read_text()
    assert re.search(rf"^\| [^|]*`{word}`[^|]* \| [^|]+ \|$", text, re.MULTILINE)
