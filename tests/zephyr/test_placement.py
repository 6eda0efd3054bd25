# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where arena and weights go: by devicetree for all models, by tinyml.yaml for one. On our QEMU Cortex-M4."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.zephyr.building import Build, copy_of_digits, options_of, rewrite, run, symbols, west_build

BOARD = "qemu_cortex_m4"
PSRAM = range(0x21000000, 0x22000000)
MEMORIES = {
    "rodata": range(0x400000),
    "tinyml_weights_PSRAM": PSRAM,
    "datas": range(0x20000000, 0x20400000),
}
CHOSEN = "/ { chosen { tinyml,arena = &%s; }; };\n"
NOTHING_CHOSEN = "/* nothing chosen */\n"


@dataclass
class App:
    """The sample with the places that a test chooses. Each choice runs CMake once."""

    build: Build
    manifest: str

    def choose(self, chosen: str = "", check: bool = True, **keys: str) -> str:
        """Arenas in the region ``chosen``, and keys of the model in tinyml.yaml."""
        rewrite(self.build.app / "app.overlay", CHOSEN % chosen if chosen else NOTHING_CHOSEN)
        lines = "".join(f"    {key}: {value}\n" for key, value in keys.items())
        rewrite(self.build.app / "tinyml.yaml", self.manifest + lines)
        return " ".join(self.build.again(check).split())

    def told(self) -> str:
        """The command that compiles the model."""
        folder = self.build.folder
        return run(["ninja", "-C", folder, "-t", "commands", "tinyml/digits/digits.c"], folder)

    def weights(self) -> set[str]:
        """The section of every table in the image; each lies in its memory."""
        tables = re.findall(r"(?m)^static const \w+ (\w+)\[", self.build.generated("digits_weights.h"))
        assert tables
        names = symbols(self.build.elf)
        found = {(names[table][0], names[table][2]) for table in tables if table in names}
        assert all(address in MEMORIES[section] for address, section in found), found
        return {section for _, section in found}

    def runs(self) -> bool:
        return "PASS: 0 of 40 outputs differ" in self.build.in_qemu(until="right")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    """An application whose devicetree puts arenas into the 16 MB of slow memory."""
    folder = copy_of_digits(tmp_path_factory.mktemp("zephyr") / "app")
    before = (folder / "tinyml.yaml").read_text()
    (folder / "app.overlay").write_text(CHOSEN % "psram0")
    (folder / "tinyml.yaml").write_text(f"{before}    weights: flash\n")
    as_the_image = "-DCONFIG_TINYML_OPTIMIZE_IMAGE=y"
    return App(west_build(folder, folder / "build", BOARD, as_the_image), before)


def test_the_chosen_region_holds_the_arena_and_is_a_budget(app: App) -> None:
    app.choose("psram0", weights="flash")
    address, size, section = symbols(app.build.elf)["digits_arena"]
    assert address in PSRAM
    assert address % 16 == 0
    assert address + size in PSRAM
    assert section == "PSRAM"
    assert app.weights() == {"rodata"}
    assert app.runs()
    assert "--limit=arena=16777216,memory region PSRAM" in app.told()
    assert "--limit=ram" not in app.told()


def test_options_of_the_image(app: App) -> None:
    """The FPU is on where the core has one; models are compiled like the rest of the image."""
    config = (app.build.folder / "zephyr" / ".config").read_text()
    assert {"CONFIG_FPU=y", "CONFIG_FPU_SHARING=y"} <= set(config.splitlines())
    assert options_of(app.build.folder, "/digits/digits.c") == ["-Os"]


@pytest.mark.deep  # test_arenas.py has such models
def test_a_model_has_its_own_regions(app: App) -> None:
    """Without a chosen node, only the model with its own region goes elsewhere."""
    app.choose(arena_region="psram0", weights="psram0")
    assert symbols(app.build.elf)["digits_arena"][0] in PSRAM
    assert app.weights() == {"tinyml_weights_PSRAM"}
    assert app.runs()


@pytest.mark.deep  # test_arenas.py has such a model
def test_weights_with_the_variables_in_ram(app: App) -> None:
    app.choose(weights="ram")
    assert symbols(app.build.elf)["digits_arena"][2] == "noinit"
    assert app.weights() == {"datas"}
    assert "--weights-in-ram" in app.told()
    assert app.runs()


@pytest.mark.tenth
@pytest.mark.parametrize(
    "chosen,keys,words",
    [
        ("sram0", {}, "chosen tinyml,arena must name an enabled devicetree node"),
        ("psram0", {"arena_region": "dtcm"}, "arena_region: dtcm, of model digits must name an enabled"),
        ("psram0", {"weights": "nowhere"}, "weights: nowhere, of model digits must name an enabled"),
    ],
)
def test_a_wrong_choice_is_explained(app: App, chosen: str, keys: dict[str, str], words: str) -> None:
    said = app.choose(chosen, check=False, **keys)
    assert words in said
    assert 'compatible = "zephyr,memory-region"' in said
    assert ("found: /memory@20000000" in said) == (chosen == "sram0")


@pytest.mark.deep
def test_the_linker_script_that_cmake_writes(tmp_path: Path) -> None:
    """Zephyr's other way to write it knows our sections, too."""
    app = copy_of_digits(tmp_path / "app")
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    weights: psram0\n")
    made = App(west_build(app, tmp_path / "build", BOARD, "-DCONFIG_CMAKE_LINKER_GENERATOR=y"), "")
    assert symbols(made.build.elf)["digits_arena"][2] == ".noinit"
    assert made.weights() == {"tinyml_weights_PSRAM"}
    assert made.runs()
