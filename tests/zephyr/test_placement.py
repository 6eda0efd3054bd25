# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where arena and weights go: by devicetree for all models, by tinyml.yaml for one. On our QEMU Cortex-M4."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.zephyr.building import Build, copy_of_digits, run, symbols, west_build

BOARD = "qemu_cortex_m4"
PSRAM = range(0x21000000, 0x22000000)
CHOSEN = "/ { chosen { tinyml,arena = &%s; }; };\n"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """An application whose devicetree puts arenas into the 16 MB of slow memory."""
    app = copy_of_digits(tmp_path_factory.mktemp("zephyr") / "app")
    (app / "app.overlay").write_text(CHOSEN % "psram0")
    return west_build(app, app / "build", BOARD)


def test_the_chosen_region_holds_the_arena(build: Build) -> None:
    address, size, section = symbols(build.elf)["digits_arena"]
    assert address in PSRAM
    assert address % 16 == 0
    assert address + size in PSRAM
    assert section == "PSRAM"
    assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")


def test_the_region_is_a_budget(build: Build) -> None:
    told = run(["ninja", "-C", build.folder, "-t", "commands", "tinyml/digits/digits.c"], build.folder)
    assert "--limit=arena=16777216,memory region PSRAM" in told
    assert "--limit=ram" not in told


def test_a_model_has_its_own_region(build: Build) -> None:
    """Without a chosen node, only the model with its own region goes elsewhere."""
    overlay, manifest = build.app / "app.overlay", build.app / "tinyml.yaml"
    before = manifest.read_text()
    overlay.write_text("/* nothing chosen */\n")
    manifest.write_text(before + "    arena_region: psram0\n")
    try:
        build.again()
        assert symbols(build.elf)["digits_arena"][0] in PSRAM
        manifest.write_text(before)
        build.again()
        assert symbols(build.elf)["digits_arena"][2] == "noinit"
    finally:
        manifest.write_text(before)
        overlay.write_text(CHOSEN % "psram0")


def test_a_wrong_choice_is_explained(build: Build) -> None:
    overlay, manifest = build.app / "app.overlay", build.app / "tinyml.yaml"
    before = manifest.read_text()
    try:
        overlay.write_text(CHOSEN % "sram0")
        said = " ".join(build.again(check=False).split())
        assert "chosen tinyml,arena must name an enabled devicetree node" in said
        assert "found: /memory@20000000" in said
        overlay.write_text(CHOSEN % "psram0")
        manifest.write_text(before + "    arena_region: dtcm\n")
        said = " ".join(build.again(check=False).split())
        assert "arena_region: dtcm, of model digits must name an enabled devicetree node" in said
    finally:
        overlay.write_text(CHOSEN % "psram0")
        manifest.write_text(before)


def weights(build: Build) -> set[tuple[int, str]]:
    """Address and section of every table in the image."""
    tables = re.findall(r"(?m)^static const \w+ (\w+)\[", build.generated("digits_weights.h"))
    assert tables
    names = symbols(build.elf)
    return {(names[table][0], names[table][2]) for table in tables if table in names}


def test_weights_go_elsewhere(build: Build) -> None:
    """Into flash with the rest, into another memory, or with the variables into RAM; and the image runs."""
    manifest = build.app / "tinyml.yaml"
    before = manifest.read_text()
    try:
        for choice, section, memory in (
            ("flash", "rodata", range(0x400000)),
            ("psram0", "tinyml_weights_PSRAM", PSRAM),
            ("ram", "datas", range(0x20000000, 0x20400000)),
        ):
            manifest.write_text(f"{before}    weights: {choice}\n")
            build.again()
            found = weights(build)
            assert {name for _, name in found} == {section}
            assert all(address in memory for address, _ in found)
            assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")
        told = run(["ninja", "-C", build.folder, "-t", "commands", "tinyml/digits/digits.c"], build.folder)
        assert "--weights-in-ram" in told
        manifest.write_text(before + "    weights: nowhere\n")
        said = " ".join(build.again(check=False).split())
        assert "weights: nowhere, of model digits must name an enabled devicetree node" in said
    finally:
        manifest.write_text(before)


@pytest.mark.deep
def test_the_linker_script_that_cmake_writes(tmp_path: Path) -> None:
    """Zephyr's other way to write it knows our sections, too."""
    app = copy_of_digits(tmp_path / "app")
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    weights: psram0\n")
    build = west_build(app, tmp_path / "build", BOARD, "-DCONFIG_CMAKE_LINKER_GENERATOR=y")
    assert symbols(build.elf)["digits_arena"][2] == ".noinit"
    assert {name for _, name in weights(build)} == {"tinyml_weights_PSRAM"}
    assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")
