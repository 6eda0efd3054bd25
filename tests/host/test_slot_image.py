# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/slot_image.md against the C structures, the packer and an image."""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.support import slot_images as fake
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE
from tinyml.harness.tools import host_compiler
from tinyml.slots import container, image
from tinyml.slots.image_layout import MAX_RANK
from tinyml.slots.version import Version

PAGE = (Path(__file__).parents[2] / "docs" / "slot_image.md").read_text(encoding="utf-8")
FORMAT_H = (Path(RUNTIME_C) / "slot" / "format.h").read_text(encoding="utf-8")
STRUCTURES = re.findall(r"^## .*`struct (\w+)`$", PAGE, re.MULTILINE)


def fields(structure: str) -> dict[str, tuple[int, int]]:
    """Offset and bytes of each field that the page lists."""
    section = PAGE.partition(f"`struct {structure}`\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (\d+) \| `([\w.]+)` \|", section, re.MULTILINE)
    return {name: (int(offset), int(size)) for offset, size, name in rows}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_structures(structure: str, tmp_path: Path) -> None:
    """Every field, in its order, without gaps."""
    listed = fields(structure)
    assert listed
    whole = f"struct {structure}"
    lines = [
        f'printf("%zu %zu\\n", offsetof({whole}, {name}), sizeof((({whole} *)0)->{name}));' for name in listed
    ]
    includes = '#include <stddef.h>\n#include <stdio.h>\n#include "format.h"\n'
    source = tmp_path / "offsets.c"
    source.write_text(
        f'{includes}int main(void) {{ {"".join(lines)} printf("%zu 0\\n", sizeof({whole})); }}\n'
    )
    program = tmp_path / "offsets"
    command = [str(host_compiler().path), f"-I{RUNTIME_C}/slot", f"-I{RUNTIME_INCLUDE}", str(source)]
    subprocess.run([*command, "-o", str(program)], check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    *found, (total, _) = (tuple(map(int, line.split())) for line in said.splitlines())
    assert list(listed.values()) == found
    end = 0
    for offset, size in listed.values():
        assert offset == end, "a field is missing"
        end = offset + size
    assert end == total


def test_the_packer_has_the_same_sizes() -> None:
    sizes = {name: max(offset + size for offset, size in fields(name).values()) for name in STRUCTURES}
    assert sizes == {
        "container_header": image._CONTAINER.size,
        "descriptor": image._DESCRIPTOR.size,
        "tensor_record": image._TENSOR.size,
        "checksum": 2 * image._INFO.size + 4,
        "record": image._INFO.size,
    }
    assert f"at most {MAX_RANK}" in PAGE
    assert container._ENTRY.size == 36
    assert f"multiple of {image.ALIGNMENT}" in PAGE


def test_an_image_has_what_the_page_says() -> None:
    content = fake.image_of(version=Version(1, 2, 3, 4), ports=2)
    forms = {1: "B", 2: "H", 4: "I"}

    def values(structure: str, start: int) -> dict[str, int]:
        return {
            name: struct.unpack_from(f"<{forms[size]}", content, start + offset)[0]
            for name, (offset, size) in fields(structure).items()
            if size in forms
        }

    header = values("container_header", 0)
    version = fields("container_header")["version"][0]
    assert struct.unpack_from("<BBHI", content, version) == (1, 2, 3, 4)
    assert (header["magic"], header["flags"], header["unused"]) == (0x96F3B83D, 0x100, 0)
    assert (header["header_bytes"], header["protected_bytes"]) == (32, 12)
    descriptor = values("descriptor", header["header_bytes"])
    assert (descriptor["magic"], descriptor["format"], descriptor["interface"]) == (0x4C534D54, 1, 1)
    assert (descriptor["inputs"], descriptor["outputs"], descriptor["tensors"]) == (2, 2, 112)
    assert content[descriptor["name"] :].startswith(b"fake\0")
    last = values("tensor_record", descriptor["tensors"] + 3 * image._TENSOR.size)
    assert content[last["name"] :].startswith(b"y1\0")
    assert struct.unpack_from("<2i", content, last["shape"]) == (1, 4)
    assert (last["offset"], last["bytes"], last["rank"]) == (36, 4, 2)
    end = header["header_bytes"] + header["payload_bytes"]
    assert values("checksum", end) == {
        "area.kind": 0x6908,
        "area.bytes": 12,
        "record.kind": 0x00A0,
        "record.bytes": 4,
        "crc32": zlib.crc32(content[:end]),
    }
    assert values("record", end + 12) == {"kind": 0x6907, "bytes": 4 + 4 + 64}
    assert values("record", end + 16) == {"kind": 0x0012, "bytes": 64}
    assert len(content) % image.ALIGNMENT == 0


def test_numbers_of_the_header() -> None:
    """Those that format.h defines, the marks among them, are on the page."""
    for name, value in re.findall(r"#define (\w+)\s+(0x[0-9a-f]{4,8})u", FORMAT_H):
        assert name == "ERASED" or value in PAGE, name
    marks = (Path(RUNTIME_C) / "slot" / "marks.c").read_text(encoding="utf-8")
    content = re.search(r"content\[MARK_BYTES\] = \{(.*?)\}", marks, re.DOTALL)
    assert content is not None
    assert " ".join(re.findall(r"0x(\w\w)", content[1])) in PAGE
    assert container.MAGIC == b"TMODEL\0\1"
