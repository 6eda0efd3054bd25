# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs say which layouts of records and tables they have; devices refuse others, and say what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.programs import build_program
from tinyml.base.errors import ConfigError
from tinyml.emit.model import Provenance
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS
from tinyml.ir import DType, Graph, Node, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.pipeline import Options, compile_graph
from tinyml.player.encode import checksum
from tinyml.player.kernels import BY_NUMBER, KERNELS
from tinyml.player.playable import LAYOUTS
from tinyml.player.table import sources, table
from tinyml.slots import image
from tinyml.slots.data import data_image
from tinyml.slots.data_reading import check_layouts, read_data
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

FORMAT, LAYOUT = 4, 5  # places in the header of a program
KERNEL = "tinyml_conv_s16"
MAIN = """
#include <stdio.h>

#include <tinyml/player.h>

TINYML_PLAYER_DEFINE(player, 4096, 16);

int main(int argc, char **argv)
{
    static _Alignas(16) uint8_t image[8192];

    for (int i = 1; i < argc; i++) {
        FILE *const file = fopen(argv[i], "rb");
        const size_t bytes = fread(image, 1, sizeof(image), file);
        const int error = tinyml_player_open(&player, image, (uint32_t)bytes);

        fclose(file);
        printf("%d %u %s\\n", error, player.call, tinyml_slot_error_text(error));
    }
    return 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def changed_kernel() -> Iterator[None]:
    """As if the first change of layouts had been one of this kernel."""
    kernel = replace(KERNELS[KERNEL], layouts=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KERNELS, KERNEL, kernel)
        patch.setitem(BY_NUMBER, kernel.number, kernel)
        yield


@pytest.fixture(scope="module")
def pack(changed_kernel: None) -> bytes:
    """A convolution of int16."""
    rng = np.random.default_rng(1)
    quant = Quant.per_tensor(0.001, 0)
    x = Tensor("x", (1, 4, 4, 2), DType.INT16, quant)
    weights = rng.integers(-100, 100, (3, 3, 3, 2)).astype(np.int8)
    w = Tensor.constant("w", weights, Quant.per_tensor(0.01, 0))
    y = Tensor("y", (1, 2, 2, 3), DType.INT16, quant)
    node = Node("conv", Conv(), ("x", "w"), ("y",))
    graph = Graph("words", {t.name: t for t in (x, w, y)}, (node,), ("x",), ("y",))
    compiled = compile_graph(graph, "m", Provenance("words", "0" * 64, ""), Options(target="generic"))
    return data_image(compiled, Version(1)).content


def changed(content: bytes, member: int, value: int) -> bytes:
    """With another number in the header of its program, and the sums that belong to it."""
    start = image.descriptor_of(content).run - image.HEADER_BYTES
    payload = bytearray(content[image.HEADER_BYTES :][: int.from_bytes(content[12:16], "little")])
    payload[start + member] = value
    payload[start : start + 4] = checksum(bytes(payload), start).to_bytes(4, "little")
    return image.seal(0, Version(1), bytes(payload), flags=0)


def test_a_pack_has_the_number_of_its_kernels(pack: bytes) -> None:
    model = read_data(pack)
    assert [kernel.name for kernel in model.kernels] == [KERNEL]
    assert model.layouts == 1 <= LAYOUTS
    assert pack[image.descriptor_of(pack).run + LAYOUT] == 1


def test_devices_refuse_other_layouts(pack: bytes, tmp_path: Path) -> None:
    packs = [pack, changed(pack, LAYOUT, 0), changed(pack, LAYOUT, LAYOUTS + 1), changed(pack, FORMAT, 3)]
    (tmp_path / "main.c").write_text(MAIN)
    kernels = read_data(pack).kernels
    (tmp_path / "table.c").write_text(table(kernels))
    files = [tmp_path / "main.c", tmp_path / "table.c", *(RUNTIME_C / name for name in sources(kernels))]
    flags = ("-std=c11", "-O1", *SANITIZERS)
    program = build_program(tmp_path / "program", files, flags, (RUNTIME_C, RUNTIME_INCLUDE))
    for number, content in enumerate(packs):
        (tmp_path / f"{number}").write_bytes(content)
    names = [str(tmp_path / f"{number}") for number in range(len(packs))]
    printed = subprocess.run([program, *names], check=True, capture_output=True, text=True).stdout
    newer = "-10 0 another format: this firmware is older than the pack, or newer"
    assert printed.splitlines() == [
        "0 1 ok",
        "-29 0 made for older kernels: pack the model again",
        newer,
        newer,
    ]


def test_an_older_pack(pack: bytes) -> None:
    """It can still be shown."""
    older = changed(pack, LAYOUT, 0)
    assert read_data(older).layouts == 0
    with pytest.raises(ConfigError, match=f"an older tinyml made the pack: since then {KERNEL}") as error:
        play_files(older, "host")
    assert error.value.hint == "pack the model again"


def test_newer_packs(pack: bytes) -> None:
    for member, value in ((LAYOUT, LAYOUTS + 1), (FORMAT, 3)):
        with pytest.raises(ConfigError, match="a newer one made it"):
            read_data(changed(pack, member, value))


def test_only_kernels_that_changed_matter(pack: bytes) -> None:
    model = read_data(pack)
    check_layouts(replace(model, run=(), layouts=0))
