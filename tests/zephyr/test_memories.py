# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where arenas and weights go, and which models share an arena. One build folder, on our QEMU Cortex-M4.

The devicetree chooses for all models, tinyml.yaml for one. Each model has its own arena, or all in a memory
share one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
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
SHARED = "CONFIG_TINYML_ARENA_SHARED=y\n"
MODELS = {"digits": "model.onnx", "second": "large.onnx", "third": "model.onnx"}


@dataclass
class Choice:
    """What an application says about its memories."""

    chosen: str = ""
    """The region for all arenas."""
    shared: bool = False
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """Those of each model in tinyml.yaml."""

    def write(self, app: Path) -> None:
        """Settings that are as they were stay untouched: CMake takes longer than all else."""
        rewrite(app / "app.overlay", CHOSEN % self.chosen if self.chosen else NOTHING_CHOSEN)
        rewrite(app / "prj.conf", "CONFIG_TINYML=y\n" + (SHARED if self.shared else ""))
        text = "models:\n"
        for name, file in MODELS.items():
            entry = {"name": name, "file": file, **self.keys.get(name, {})}
            text += f"  - {{{', '.join(f'{key}: {value}' for key, value in entry.items())}}}\n"
        rewrite(app / "tinyml.yaml", text)


IN_SLOW_MEMORY = Choice("psram0", keys={"digits": {"weights": "flash"}})


@dataclass
class App:
    """The sample with the places that a test chooses. Each choice runs CMake once."""

    build: Build

    def choose(self, choice: Choice, check: bool = True) -> str:
        choice.write(self.build.app)
        return " ".join(self.build.again(check).split())

    def told(self) -> str:
        """The command that compiles a model."""
        folder = self.build.folder
        return run(["ninja", "-C", folder, "-t", "commands", "tinyml/digits/digits.c"], folder)

    def arenas(self) -> dict[str, range]:
        """Where each model's part lies; its size is the compiler's, the symbol's may be that of the whole."""
        names = symbols(self.build.elf)
        headers = {name: (self.build.folder / "tinyml" / name / f"{name}.h").read_text() for name in MODELS}
        sizes = {name: int(text.split("_ARENA_BYTES ")[1].split()[0]) for name, text in headers.items()}
        starts = {name: names[f"{name}_arena"][0] for name in MODELS}
        return {name: range(start, start + sizes[name]) for name, start in starts.items()}

    def section_of_arena(self, model: str) -> str:
        return symbols(self.build.elf)[f"{model}_arena"][2]

    def section_of_weights(self, model: str) -> str:
        """The one section of all tables of a model that are in the image; each lies in its memory."""
        text = (self.build.folder / "tinyml" / model / f"{model}_weights.h").read_text()
        names = symbols(self.build.elf)
        tables = [table for table in re.findall(r"(?m)^static const \w+ (\w+)\[", text) if table in names]
        (section,) = {names[table][2] for table in tables}
        assert all(names[table][0] in MEMORIES[section] for table in tables), tables
        return section

    def noinit_bytes(self) -> int:
        names = symbols(self.build.elf)
        return names["tinyml_arena_end"][0] - names["tinyml_arena_start"][0]

    def runs(self) -> bool:
        return "PASS: 0 of 40 outputs differ" in self.build.in_qemu(until="right")


def write_large_model(path: Path) -> None:
    """One layer on 4000 numbers."""
    from onnx import TensorProto, helper, save

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4000]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "large", ports[:1], ports[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    """Three models in 16 MB of slow memory. The second one needs a larger arena than the others."""
    folder = copy_of_digits(tmp_path_factory.mktemp("zephyr") / "app")
    main = folder / "src" / "main.c"
    includes = "#include <digits.h>\n#include <second.h>\n#include <third.h>"
    text = main.read_text().replace("#include <digits.h>", includes)
    main.write_text(text.replace("int main(void)\n{", "int main(void)\n{\n\tsecond_run();\n\tthird_run();"))
    write_large_model(folder / "large.onnx")
    (folder / "app.overlay").touch()
    IN_SLOW_MEMORY.write(folder)
    as_the_image = "-DCONFIG_TINYML_OPTIMIZE_IMAGE=y"
    return App(west_build(folder, folder / "build", BOARD, as_the_image))


def rounded_up(size: int) -> int:
    """Arenas are aligned to 16 bytes."""
    return -(-size // 16) * 16


def expect_arenas_apart(app: App) -> None:
    first, second, third = sorted(app.arenas().values(), key=lambda part: part.start)
    assert first.stop <= second.start
    assert second.stop <= third.start


def test_the_chosen_region_holds_the_arenas_and_is_a_budget(app: App) -> None:
    """Each model has an arena of its own there."""
    app.choose(IN_SLOW_MEMORY)
    for name, arena in app.arenas().items():
        assert arena.start in PSRAM
        assert arena.start % 16 == 0
        assert arena.stop in PSRAM
        assert app.section_of_arena(name) == "PSRAM"
    expect_arenas_apart(app)
    assert app.section_of_weights("digits") == "rodata"
    assert app.runs()
    assert "--limit=arena=16777216,memory region PSRAM" in app.told()
    assert "--limit=ram" not in app.told()


def test_options_of_the_image(app: App) -> None:
    """The FPU is on where the core has one; models are compiled like the rest of the image."""
    config = (app.build.folder / "zephyr" / ".config").read_text()
    assert {"CONFIG_FPU=y", "CONFIG_FPU_SHARING=y"} <= set(config.splitlines())
    assert options_of(app.build.folder, "/digits/digits.c") == ["-Os"]


def test_unused_locks_take_no_memory(app: App) -> None:
    app.choose(IN_SLOW_MEMORY)
    names = symbols(app.build.elf)
    assert not [name for name in names if name.endswith("_lock") and name.startswith("digits")]


def test_one_in_each_memory(app: App) -> None:
    """The weights of the first and of the third model have places of their own as well."""
    keys = {
        "digits": {"weights": "psram0"},
        "second": {"arena_region": "psram0"},
        "third": {"arena_region": "psram0", "weights": "ram"},
    }
    app.choose(Choice(shared=True, keys=keys))
    found = app.arenas()
    assert found["second"].start == found["third"].start
    assert found["second"].start in PSRAM
    assert app.section_of_arena("second") == "PSRAM"
    assert app.section_of_arena("digits") == "noinit"
    assert app.section_of_weights("digits") == "tinyml_weights_PSRAM"
    assert app.section_of_weights("third") == "datas"
    assert app.noinit_bytes() == rounded_up(len(found["digits"]))
    assert app.runs()


@pytest.mark.deep
def test_one_for_all_is_as_large_as_the_largest(app: App) -> None:
    app.choose(Choice(shared=True))
    found = app.arenas()
    assert found["digits"].start == found["second"].start == found["third"].start
    assert len(found["second"]) > len(found["digits"])
    assert app.noinit_bytes() == rounded_up(len(found["second"]))
    assert app.runs()


@pytest.mark.deep
def test_each_has_its_own_where_nothing_is_chosen(app: App) -> None:
    app.choose(Choice())
    expect_arenas_apart(app)
    assert {app.section_of_arena(name) for name in MODELS} == {"noinit"}
    assert app.runs()


@pytest.mark.deep
def test_a_model_has_its_own_regions(app: App) -> None:
    """Without a chosen node, only the model with its own region goes elsewhere."""
    app.choose(Choice(keys={"digits": {"arena_region": "psram0", "weights": "psram0"}}))
    assert app.arenas()["digits"].start in PSRAM
    assert app.section_of_arena("third") == "noinit"
    assert app.section_of_weights("digits") == "tinyml_weights_PSRAM"
    assert app.runs()


@pytest.mark.deep
def test_weights_with_the_variables_in_ram(app: App) -> None:
    app.choose(Choice(keys={"digits": {"weights": "ram"}}))
    assert app.section_of_arena("digits") == "noinit"
    assert app.section_of_weights("digits") == "datas"
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
    said = app.choose(Choice(chosen, keys={"digits": keys}), check=False)
    assert words in said
    assert 'compatible = "zephyr,memory-region"' in said
    assert ("found: /memory@20000000" in said) == (chosen == "sram0")


@pytest.mark.deep
def test_the_linker_script_that_cmake_writes(tmp_path: Path) -> None:
    """Zephyr's other way to write it knows our sections, too."""
    folder = copy_of_digits(tmp_path / "app")
    with (folder / "tinyml.yaml").open("a") as manifest:
        manifest.write("    weights: psram0\n")
    made = App(west_build(folder, tmp_path / "build", BOARD, "-DCONFIG_CMAKE_LINKER_GENERATOR=y"))
    assert made.section_of_arena("digits") == ".noinit"
    assert made.section_of_weights("digits") == "tinyml_weights_PSRAM"
    assert made.runs()
