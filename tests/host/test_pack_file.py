# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs in files: only the image for the core is read, and a file can be anything. Under sanitizers."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.support.programs import build_program
from tests.support.slot_images import errors
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS
from tinyml.pipeline import Options
from tinyml.player.table import sources, table
from tinyml.slots import container
from tinyml.slots.data_pack import pack_data
from tinyml.slots.data_reading import read_data
from tinyml.slots.families import DSP, HELIUM, PLAIN, RISCV
from tinyml.slots.version import Version

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
ERRORS = errors(Path(RUNTIME_INCLUDE) / "tinyml" / "slot.h")
ROOM = 8192
MAIN = """
#include <stdio.h>
#include <stdlib.h>

#include <tinyml/pack_file.h>

TINYML_PLAYER_DEFINE(player, 4096, 0);

static long failing; /* the read that fails */
static unsigned long taken;

static int read_at(void *context, uint32_t position, void *data, uint32_t bytes)
{
    taken += bytes;
    return --failing == 0 || fseek(context, (long)position, SEEK_SET) != 0 ||
           fread(data, 1, bytes, context) != bytes;
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 2 < argc; i += 3) { /* file, room, read that fails */
        struct tinyml_pack_file file = {.read = read_at, .context = fopen(argv[i], "rb")};
        const uint32_t room = (uint32_t)atol(argv[i + 1]);
        uint8_t *memory = aligned_alloc(16, (room + 15u) / 16u * 16u);
        int error;

        failing = atol(argv[i + 2]);
        taken = 0;
        fseek(file.context, 0, SEEK_END);
        file.bytes = (uint32_t)ftell(file.context);
        error = tinyml_player_load(&player, &file, memory, room);
        printf("%d %d %lu\\n", error, player.model.run(), taken);
        tinyml_player_close(&player);
        free(memory);
        fclose(file.context);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def content() -> bytes:
    """A file with images for four families; the host plays the second."""
    return container.encode(pack_data(DIGITS, Options(), (DSP, PLAIN, HELIUM, RISCV), Version(7))[0])


@pytest.fixture(scope="module")
def program(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack_file")
    kernels = read_data(container.decode(content, "").images["plain"]).kernels
    (folder / "main.c").write_text(MAIN)
    (folder / "table.c").write_text(table(kernels))
    files = [folder / "main.c", folder / "table.c", *(RUNTIME_C / name for name in sources(kernels))]
    flags = ("-std=c11", "-O1", *SANITIZERS)
    return build_program(folder / "program", files, flags, (RUNTIME_C, RUNTIME_INCLUDE))


def loaded(
    program: Path, folder: Path, files: Sequence[bytes], room: int = ROOM, failing: int = 0
) -> list[str]:
    """The errors by name; a model that was refused does not run. What was read is added if all is well."""
    words: list[str] = []
    for number, content in enumerate(files):
        (folder / str(number)).write_bytes(content)
        words += [str(folder / str(number)), str(room), str(failing)]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = []
    for line in done.stdout.splitlines():
        error, run, taken = map(int, line.split())
        assert run == (0 if error == 0 else -20)
        found.append(taken if error == 0 else ERRORS[error])
    return [str(word) for word in found]


def test_only_one_image_is_read(program: Path, content: bytes, tmp_path: Path) -> None:
    image = container.decode(content, "").images["plain"]
    whole, alone = loaded(program, tmp_path, [content, image])
    assert len(image) < int(whole) < len(image) + 1024 < len(content)
    assert int(alone) == len(image) + 12


def test_what_is_refused(program: Path, content: bytes, tmp_path: Path) -> None:
    pack = container.decode(content, "")
    foreign = container.encode(container.Pack({"helium": pack.images["helium"]}))
    image = bytearray(pack.images["plain"])
    image[len(image) // 2] ^= 1
    files = [b"", b"short", content[:40], content[: len(content) // 2], foreign, bytes(image)]
    found = loaded(program, tmp_path, files)
    assert found == ["BOUNDS", "BOUNDS", "BOUNDS", "BOUNDS", "CORE_TOO_SMALL", "DAMAGED"]
    assert loaded(program, tmp_path, [content], room=len(image) - 1) == ["REGION"]
    for failing in range(1, 11):  # four entries, four starts of images, the head and the image
        assert loaded(program, tmp_path, [content], failing=failing) == ["FLASH"]
    assert loaded(program, tmp_path, [content], failing=11)[0].isdecimal()


def test_any_file(program: Path, content: bytes, tmp_path: Path) -> None:
    """Cut off anywhere, and with numbers of its table replaced."""
    random = Random(1)
    cut = [content[: random.randrange(len(content))] for _ in range(100)]
    assert set(loaded(program, tmp_path, cut)) == {"BOUNDS"}
    changed = []
    for _ in range(400):
        other = bytearray(content)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(8, 160) // 4 * 4
            value = random.choice((0, 1, 4, 16, 2**31, 2**32 - 1, 2**32 - 16, random.getrandbits(32)))
            struct.pack_into("<I", other, at, value)
        changed.append(bytes(other))
    found = loaded(program, tmp_path, changed)
    assert {"BOUNDS"} < set(found)
