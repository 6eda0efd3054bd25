# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project without a model plays one that is data: one file for the host and for a Cortex-M3."""

from __future__ import annotations

import subprocess

from tests.platformio.conftest import REPOSITORY, MakeProject
from tests.platformio.digits import HOST, QEMU
from tinyml.pipeline import Options
from tinyml.slots import container
from tinyml.slots.data_pack import pack_data
from tinyml.slots.families import ARM, PLAIN
from tinyml.slots.version import Version

PLAYER = "custom_tinyml_player = all\n"
MAIN = """
#include <stdio.h>

#include <tinyml/player.h>

static const uint8_t pack[] __attribute__((aligned(TINYML_PLAYER_ALIGNMENT))) = {
#include "pack.inc"
};

TINYML_PLAYER_DEFINE(player, 4096, 0);

int main(void)
{
    int error = tinyml_player_open(&player, pack, sizeof(pack));

    printf("open: %s\\n", tinyml_slot_error_text(error));
    if (error == 0) {
        printf("%s: %s\\n", player.model.name, tinyml_slot_error_text(tinyml_player_self_test(&player)));
    }
    return 0;
}
"""


def test_a_model_is_played(make_project: MakeProject) -> None:
    project = make_project(f"{HOST}{PLAYER}\n{QEMU}{PLAYER}")
    model = REPOSITORY / "samples" / "digits" / "model.onnx"
    pack, _ = pack_data(model, Options(name="digits"), (PLAIN, ARM), Version(1))
    project.write("src/pack.inc", ",".join(map(str, container.encode(pack))) + "\n")
    project.write("src/main.c", MAIN)
    project.build("-e", "host")
    said = subprocess.run([project.program()], capture_output=True, text=True, check=True).stdout
    said += project.build("-e", "m3", "-t", "qemu")
    lines = [line for line in said.splitlines() if line.startswith(("open:", "digits:"))]
    assert lines == ["open: ok", "digits: ok"] * 2, said


def test_a_wrong_word(make_project: MakeProject) -> None:
    project = make_project(f"{HOST}custom_tinyml_player = convolution\n")
    project.write("src/main.c", MAIN)
    assert "there are no kernels called 'convolution'" in project.fail("-e", "host")
