# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What `report -d` reads from the image of a build."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tinyml.bounds.elf import Elf, Section
from tinyml.pipeline import Options
from tinyml.report.collect import collect
from tinyml.report.image import CODE, CONSTANTS, VALUES, ZEROS, bytes_by_owner, image_bytes
from tinyml.verbs.cli import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
MAP = """
Discarded input sections

 .text.unused   0x00000000       0x40 modules/tinyml/libtinyml_kernels.a(dense.c.obj)

Linker script and memory map

text            0x00000100      0x200
 .text.tinyml_conv_s8
                0x00000100       0x80 modules/tinyml/libtinyml_kernels.a(conv_s8.c.obj)
 .text.kws_run  0x00000180       0x20 modules/tinyml/libtinyml_model_kws.a(kws.c.obj)
 .text.main     0x000001a0       0x10 app/libapp.a(main.c.obj)
rodata          0x00000300      0x100
 .rodata.kws    0x00000300       0xf0 modules/tinyml/libtinyml_model_kws.a(kws.c.obj)
datas           0x20000000       0x10
 .data.claim    0x20000000        0x8 modules/tinyml/libtinyml.a(claim.c.obj)
noinit          0x20000100      0x400
 .tinyml_arena.kws
                0x20000100      0x400 libtinyml_arenas.a(arenas.c.obj)
 .debug_info    0x00000150      0x999 modules/tinyml/libtinyml_kernels.a(conv_s8.c.obj)
 .comment       0x00000150       0x27 modules/tinyml/libtinyml_kernels.a(conv_s8.c.obj)
"""


def section(name: str, address: int, count: int, writable: bool, code: bool, zeros: bool = False) -> Section:
    return Section(name, address, None if zeros else bytes(count), count, writable, code)


ELF = Elf(
    (
        section("text", 0x100, 0x200, False, True),
        section("rodata", 0x300, 0x100, False, False),
        section("datas", 0x20000000, 0x10, True, False),
        section("noinit", 0x20000100, 0x400, True, False, zeros=True),
    ),
    (),
)


@pytest.mark.parametrize("known", [True, False], ids=["tinyml.yaml", "CMake"])
def test_over_budget(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settings that fit are priced as tinyml.yaml writes them; what CMake alone knows has another way."""
    app, build = tmp_path / "app", tmp_path / "build"
    for folder in (app, build):
        folder.mkdir()
    shutil.copy(DIGITS, app / "model.onnx")
    (app / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    if known:
        (app / "tinyml.yaml").write_text("models:\n  - {name: digits, file: model.onnx}\n")
    (build / "CMakeCache.txt").write_text(f"APPLICATION_SOURCE_DIR:PATH={app}\n")
    report = collect(app / "model.onnx", Options("digits", "cortex-m3"))
    monkeypatch.setattr(
        sys.modules[bytes_by_owner.__module__], "reports_of_build", lambda folder, name: [report]
    )
    assert main(["report", "-d", str(build), "--ram", "1400"]) == 1
    said = capsys.readouterr().out
    assert "over budget: RAM: 1,680 bytes of 1,400" in said
    assert ("try: `io: rows` (1,272 bytes, " in said) == known
    assert ("`optimize: ram` (856 bytes" in said) == known
    assert ("tinyml report MODEL" in said) != known


def test_bytes_belong_to_libraries() -> None:
    """Discarded sections and what a debugger reads are not in the image."""
    assert bytes_by_owner(ELF, MAP) == {
        ("_kernels", CODE): 0x80,
        ("_model_kws", CODE): 0x20,
        ("_model_kws", CONSTANTS): 0xF0,
        ("", VALUES): 8,
        ("_arenas", ZEROS): 0x400,
    }
    assert image_bytes(ELF) == (0x310, 0x410)


@pytest.mark.parametrize("verb", [["report"], ["bound"], ["evidence", "-o", "new.zip"]])
def test_the_build_in_this_folder(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As west, the verbs take the folder `build` if the command line names neither a build nor a model."""
    monkeypatch.chdir(tmp_path)
    assert main(verb) != 0
    said = capsys.readouterr().err
    assert (
        "which model? There is no build in ./build either" in said
        or "build has no image with a model" in said
    )
    (tmp_path / "build" / "zephyr").mkdir(parents=True)
    (tmp_path / "build" / "zephyr" / "zephyr.elf").write_bytes(b"\x7fELF\x02\x01" + bytes(64))
    assert main(verb) != 0
    assert "build/zephyr/zephyr.elf is not an ELF file for a 32-bit" in capsys.readouterr().err


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-d", str(tmp_path)]) != 0
    assert "has no image with a model" in capsys.readouterr().err
    assert main(["report", "-d", str(tmp_path), "--on", "qemu-cortex-m4"]) != 0
    assert "--on does not go with -d" in capsys.readouterr().err
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / "zephyr.elf").write_bytes(b"\x7fELF\x02\x01" + bytes(64))
    assert main(["report", "-d", str(tmp_path)]) != 0
    assert "is not an ELF file for a 32-bit core" in capsys.readouterr().err
