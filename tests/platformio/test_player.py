# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project without a model plays one that is data: one file for the host and for a Cortex-M3."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import tinyml
from tests.platformio.conftest import REPOSITORY, MakeProject, Project
from tests.platformio.digits import HOST, QEMU
from tinyml.pipeline import Options
from tinyml.slots import container
from tinyml.slots.data_pack import pack_data
from tinyml.slots.families import ARM, PLAIN
from tinyml.slots.version import Version

SAMPLE = REPOSITORY / "samples" / "platformio_player"
PLAYER = "custom_tinyml_player = all\n"
MAIN = """
#include <stdio.h>

#include <tinyml/player.h>

static const uint8_t pack[] __attribute__((aligned(TINYML_PLAYER_ALIGNMENT))) = {
#include "pack.inc"
};

TINYML_PLAYER_DEFINE(player, 4096, 0);
TINYML_PLAYER_DEFINE(another, 8192, 0);
TINYML_PLAYER_DEFINE(narrow, 100, 0);

static void play(struct tinyml_player *one)
{
    int error = tinyml_player_open(one, pack, sizeof(pack));

    printf("open: %s\\n", tinyml_slot_error_text(error));
    if (error == 0) {
        printf("%s: %s\\n", one->model.name, tinyml_slot_error_text(tinyml_player_self_test(one)));
    } else {
        printf("arena: %d\\n", one->model.arena_bytes > 100);
    }
}

int main(void)
{
    play(&player);
    play(&another);
    play(&narrow);
    printf("both: %d\\n", player.model.run() == 0 && another.model.run() == 0);
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
    lines = [line for line in said.splitlines() if line.startswith(("open:", "digits:", "arena:", "both:"))]
    two = ["open: ok", "digits: ok"] * 2
    assert lines == [*two, "open: needs a larger arena", "arena: 1", "both: 1"] * 2, said


@pytest.mark.tenth
@pytest.mark.parametrize(
    "word, said",
    [
        ("convolution", "there are no kernels called 'convolution'"),
        ("missing.tmodel", "missing.tmodel"),
        ("missing.onnx", "missing.onnx"),
        ("fourier.onnx", "the player has no kernel for these layers"),
    ],
)
def test_a_wrong_word(make_project: MakeProject, word: str, said: str) -> None:
    project = make_project(f"{HOST}custom_tinyml_player = {word}\n")
    project.write("src/main.c", MAIN)
    fourier = make_node("DFT", ["x"], ["y"], onesided=1)
    graph = make_graph(
        [fourier],
        "fourier",
        [make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 1])],
        [make_tensor_value_info("y", TensorProto.FLOAT, [1, 9, 2])],
    )
    model = make_model(graph, opset_imports=[make_opsetid("", 17)])
    (project.folder / "fourier.onnx").write_bytes(model.SerializeToString())
    assert said in project.fail("-e", "host")


def test_the_sample_receives_a_model(make_project: MakeProject) -> None:
    """`tinyml deploy` over the sample's port; what it received is there after a restart."""
    project = make_project(f"{HOST}{PLAYER}")
    shutil.copytree(SAMPLE / "src", project.folder / "src")
    project.build()
    folder = project.folder
    model = REPOSITORY / "samples" / "digits" / "model.onnx"
    pack, _ = pack_data(model, Options(name="digits"), (PLAIN, ARM), Version(1))
    (folder / "digits.tmodel").write_bytes(container.encode(pack))
    with Started(project) as device:
        assert device.line() == "model: no model that may be used"
        command = [sys.executable, "-m", "tinyml", "deploy", "digits.tmodel", "--serial", device.port]
        subprocess.run(command, cwd=folder, env=project.environment, check=True, capture_output=True)
        received = device.line()
        assert received.startswith("model: digits, ")
        with tinyml.connect(device.port) as connected:
            images = np.linspace(0, 1, 2 * 64, dtype=np.float32).reshape(2, 1, 8, 8)
            found = connected.run("digits", images)["logits"]
        np.testing.assert_array_equal(found, tinyml.run(model, images)["logits"])
    with Started(project) as device:
        assert device.line() == received


class Started:
    """The sample's program while it runs, on a port that is free."""

    def __init__(self, project: Project) -> None:
        self.process = subprocess.Popen(
            [project.program(), "0"], cwd=project.folder, stdout=subprocess.PIPE, text=True
        )
        self.port = self.line().removeprefix("serial port: ").replace("localhost", "127.0.0.1")

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
