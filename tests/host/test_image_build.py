# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Building images with west: its command lines, and the few lines of its log that say what is wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tinyml.base.errors import BudgetError, ConfigError, ToolError
from tinyml.harness.device_session import Greeting
from tinyml.harness.zephyr import Build, DevicetreeError, Site, devicetree_options, write_application
from tinyml.harness.zephyr.board_runner import ZephyrPlace
from tinyml.projects.manifest import ModelEntry, load

# Records its arguments, prints what the test specifies, and fails if that is not empty.
WEST = """\
import pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "asked.txt").open("a") as notes:
    notes.write(" ".join(sys.argv[1:]) + "\\n")
said = (here / "said.txt").read_text() if (here / "said.txt").exists() else ""
print(said)
sys.exit(bool(said) and sys.argv[1] != "list")
"""


# What Zephyr prints without the HAL of the board's vendor.
KCONFIG = """\
warning: HAS_NRFX (defined at modules/hal_nordic/nrfx/Kconfig:4) has direct dependencies 0 with value n, but
 - SOC_SERIES_NRF52X (defined at soc/nordic/Kconfig.soc:30), with value y

error: Aborting due to Kconfig warnings

CMake Error at zephyr/cmake/modules/kconfig.cmake:393 (message):
  command failed with return code: 1
"""
INCLUDE = """\
In file included from /w/zephyr/boards/st/nucleo_f446re/nucleo_f446re.dts:8:
fatal error: st/f4/stm32f446r(c-e)tx-pinctrl.dtsi: No such file or directory
CMake Error at zephyr/cmake/modules/dts.cmake:296 (message):
"""


@pytest.fixture
def build(tmp_path: Path) -> Build:
    (tmp_path / "west.py").write_text(WEST)
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "app").mkdir()
    site = Site(tmp_path / "zephyr", (sys.executable, str(tmp_path / "west.py")))
    return Build(site, "a_board", tmp_path / "app", tmp_path / "build", "kws")


def asked(build: Build) -> list[str]:
    lines = (build.app.parent / "asked.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("list")]


def test_the_same_options_build_incrementally_and_others_from_scratch(build: Build) -> None:
    build.make(["-DX=1"])
    build.make(["-DX=1"])  # CMake has failed
    build.folder.mkdir()
    (build.folder / "build.ninja").touch()
    build.make(["-DX=1"])
    build.make([])
    first, second, third, fourth = asked(build)
    assert first.startswith("build --no-sysbuild -p always -b a_board")
    assert first.endswith("-- -GNinja -DX=1")
    assert second == first
    assert third == f"build -d {build.folder}", "west runs CMake again for options"
    assert "-p always" in fourth


def test_an_application_that_is_written_again_stays_as_it_is(tmp_path: Path) -> None:
    entry = ModelEntry("kws", str(tmp_path / "kws.onnx"))

    def inodes() -> dict[str, int]:
        files = (path for path in (tmp_path / "app").rglob("*") if path.is_file())
        return {path.name: path.stat().st_ino for path in files}

    write_application(tmp_path / "app", entry, ["CONFIG_A=y"])
    first = inodes()
    write_application(tmp_path / "app", entry, ["CONFIG_A=y"])
    assert inodes() == first
    write_application(tmp_path / "app", entry, [])
    changed = {name for name, inode in inodes().items() if inode != first[name]}
    assert changed == {"prj.conf"}


def test_flashing(build: Build) -> None:
    build.flash()
    assert asked(build) == [f"flash --skip-rebuild -d {build.folder}"]


def test_generated_files_are_built_when_they_change(build: Build) -> None:
    build.generated.mkdir(parents=True)
    build.replace_model({"kws.c": "int a;\n"})
    build.replace_model({"kws.c": "int a;\n"})
    assert asked(build) == [f"build -d {build.folder}"]


@pytest.mark.parametrize(
    "said,kind,words",
    [
        ("No board named 'a_board' found.", ConfigError, "Zephyr has no board called 'a_board'"),
        ("a\nld: region `RAM' overflowed by 10 bytes\nb", BudgetError, "overflowed by 10 bytes"),
        ("quiet\nmain.c:1:1: error: broken\nmore", ToolError, "error: broken\nmore"),
        ("\n".join(f"line {i}" for i in range(100)), ToolError, "line 99"),
        (KCONFIG, ToolError, "Kconfig: HAS_NRFX (defined at modules/hal_nordic/nrfx/Kconfig:4)"),
        (
            KCONFIG,
            ToolError,
            "does not have hal_nordic, the vendor's drivers for a_board\n  try: add",
        ),
        (INCLUDE, ToolError, "does not have hal_stm32"),
        ("warning: X (defined at a)\nerror: Aborting due to Kconfig warnings", ToolError, "Kconfig: X"),
        ("quiet\ndevicetree error: app.overlay:1: undefined node label 'x'", DevicetreeError, "label 'x'"),
    ],
)
def test_failures(build: Build, said: str, kind: type[Exception], words: str) -> None:
    (build.app.parent / "said.txt").write_text(said)
    with pytest.raises(kind) as caught:
        build.make([])
    assert words in str(caught.value)
    assert "quiet" not in str(caught.value)
    assert "line 1\n" not in str(caught.value)


def test_paths_are_seen_from_the_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry = ModelEntry("kws", "models/kws.onnx", quantize={"calibration": "data.npz", "io": "int8"})
    write_application(tmp_path / "a" / "b", entry, ["CONFIG_X=y"])
    (model,) = load(tmp_path / "a" / "b" / "tinyml.yaml").models
    assert model.file == "../../models/kws.onnx"
    assert model.quantize == {"calibration": "../../data.npz", "io": "int8"}
    assert (tmp_path / "a" / "b" / "prj.conf").read_text().endswith("CONFIG_X=y\n")
    assert (tmp_path / "a" / "b" / "src" / "main.c").is_file()


@pytest.mark.parametrize("loop_cycles, total", [(66_676, 1_500), (0, None)])
def test_ticks_of_an_emulated_clock_become_instructions(
    build: Build, loop_cycles: int, total: int | None
) -> None:
    """By a loop of known length; for a core that the loop was not written for they cannot."""
    (build.folder / "zephyr").mkdir(parents=True)
    (build.folder / "zephyr" / ".config").write_text("CONFIG_QEMU_TARGET=y\n")
    greeting = Greeting(512, 1, True, False, 10_000_000, empty_cycles=10, loop_cycles=loop_cycles)
    if total is None:
        with pytest.raises(ConfigError, match="the core of a_board"):
            ZephyrPlace(build)._cost(greeting, 1_010, [510])
    else:
        cost = ZephyrPlace(build)._cost(greeting, 1_010, [510])
        assert (cost.unit, cost.total, cost.layers) == ("instructions", total, [750])


def test_overlays_of_an_application(tmp_path: Path) -> None:
    app, image = tmp_path / "app", tmp_path / "image"
    (app / "boards").mkdir(parents=True)
    (app / "dts").mkdir()
    assert devicetree_options(image, app) == []
    (app / "boards" / "a_board.overlay").touch()
    assert devicetree_options(image, app) == [
        f"-DAPPLICATION_CONFIG_DIR={app.as_posix()}",
        f"-DCONF_FILE={(image / 'prj.conf').as_posix()}",
        f"-DDTS_ROOT={app.as_posix()}",
    ]


def test_progress_of_ninja(build: Build) -> None:
    steps: list[tuple[str, int, int]] = []
    (build.app.parent / "said.txt").write_text("[1/3] one\n-- Configuring\n[3/3] three")
    with pytest.raises(ToolError):  # this west fails when it speaks
        replace(build, progress=lambda *step: steps.append(step)).make([])
    assert steps == [("building for a_board", 1, 3), ("building for a_board", 3, 3)]


def test_boards_without_an_emulator(build: Build, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(str(tmp_path))
    assert build.site.has_emulator("unknown")  # west will say so
    (tmp_path / "board.cmake").write_text("board_runner_args(jlink)\n")
    assert not build.site.has_emulator("nrf52840dk/nrf52840")
    (tmp_path / "board.cmake").write_text("set(SUPPORTED_EMU_PLATFORMS qemu)\n")
    assert build.site.has_emulator("qemu_cortex_m3")
