# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Slots that hold images without code: opened, tested and run by the device's own C, under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.programs import build_program
from tinyml.harness.program_build import RUNTIME_C, SANITIZERS
from tinyml.pipeline import Options
from tinyml.player.table import sources, table
from tinyml.slots.data_pack import pack_data
from tinyml.slots.data_reading import read_data
from tinyml.slots.families import PLAIN
from tinyml.slots.version import Version

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
MAIN = """
#include <stdio.h>
#include <string.h>

#include <tinyml/player.h>

TINYML_SLOT_PLAYER_DEFINE(slot, 4096, 0);
TINYML_SLOT_PLAYER_DEFINE(small, 64, 0);
TINYML_SLOT_DEFINE(codes, 4096, 0);

static _Alignas(32) uint8_t memory[1 << 16];

int main(int argc, char **argv)
{
    FILE *file = fopen(argv[1], "rb");
    const size_t bytes = file != NULL ? fread(memory, 1, sizeof(memory), file) : 0;
    const struct tinyml_slot_region region = {memory, 0x10000, (uint32_t)bytes, NULL};

    (void)argc;
    fclose(file);
    printf("check %d\\n", tinyml_slot_check(&slot, &region, NULL));
    printf("before %d\\n", slot.model.run());
    printf("open %d\\n", tinyml_slot_open(&slot, &region, NULL));
    printf("test %d\\n", tinyml_slot_self_test(&slot));
    printf("run %d %s %u\\n", slot.model.run(), slot.model.name, (unsigned)(slot.version[0] & 0xff));
    printf("small %d\\n", tinyml_slot_open(&small, &region, NULL));
    printf("without a player %d\\n", tinyml_slot_open(&codes, &region, NULL));
    memory[bytes / 2] ^= 1;
    printf("damaged %d\\n", tinyml_slot_open(&slot, &region, NULL));
    printf("after %d\\n", slot.model.run());
    return 0;
}
"""


@pytest.fixture(scope="module")
def image() -> bytes:
    pack, _ = pack_data(DIGITS, Options(name="digits"), (PLAIN,), Version(7))
    return pack.images["plain"]


@pytest.fixture(scope="module")
def program(image: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slot_player")
    kernels = read_data(image).kernels
    (folder / "main.c").write_text(MAIN)
    (folder / "table.c").write_text(table(kernels))
    names = {*sources(kernels), "player/slot_player.c", "slot/slot.c", "slot/crc32.c", "slot/sync.c"}
    files = [folder / "main.c", folder / "table.c", *(RUNTIME_C / name for name in sorted(names))]
    includes = (RUNTIME_C, RUNTIME_C / "include")
    return build_program(folder / "program", files, ("-std=c11", "-O1", *SANITIZERS), includes)


def said(program: Path, image: bytes) -> dict[str, str]:
    path = program.with_name("image.bin")
    path.write_bytes(image)
    done = subprocess.run([program, path], capture_output=True, text=True, check=True)
    return dict(
        line.rsplit(" ", 1) if "run" not in line else line.split(" ", 1) for line in done.stdout.splitlines()
    )


def test_a_slot_plays(program: Path, image: bytes) -> None:
    """The image has no address; the player of one slot does not disturb another."""
    assert said(program, image) == {
        "check": "0",
        "before": "-20",
        "open": "0",
        "test": "0",
        "run": "0 digits 7",
        "small": "-13",
        "without a player": "-11",
        "damaged": "-6",
        "after": "-20",
    }
