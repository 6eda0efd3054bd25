# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml new`: what the folder has, what is refused, and that a refused command leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tinyml.harness.zephyr.boards  # binds find_site before a test replaces it  # noqa: F401
from tinyml.base.errors import ToolError
from tinyml.cores.boards import Board
from tinyml.projects import folder
from tinyml.verbs.cli import main

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
DIGITS = SAMPLES / "digits" / "model.onnx"
NAMES = "zero,one,two,three,four,five,six,seven,eight,nine"


def make(app: Path, *words: str, model: Path = DIGITS) -> int:
    return main(["new", str(app), "--model", str(model), *words])


def test_a_zephyr_application(tmp_path: Path) -> None:
    app = tmp_path / "app"
    assert make(app, "--name", "digits", "--classes", NAMES, "-b", "nrf52840dk/nrf52840") == 0
    (entry,) = folder.find_application(app, tmp_path).manifest().models
    assert (entry.name, entry.file) == ("digits", "models/model.onnx")
    assert len(entry.classes) == 10
    assert "CONFIG_TINYML=y" in (app / "prj.conf").read_text()
    assert "labels[decision]" in (app / "src" / "main.c").read_text()
    assert "- nrf52840dk/nrf52840" in (app / "sample.yaml").read_text()
    assert "- nrf52840dk/nrf52840" in (app / "tests" / "digits" / "testcase.yaml").read_text()
    notes = (app / "AGENTS.md").read_text()
    for step in ("west build -b nrf52840dk/nrf52840", "tinyml add OTHER.onnx --name other", "budget: {ram:"):
        assert step in notes
    assert {path.name for path in tmp_path.iterdir()} == {"app"}


@pytest.mark.parametrize(
    "board, modules",
    [
        ("qemu_cortex_m3", "$(tinyml zephyr-module)"),
        ("qemu_cortex_m4", "$(tinyml zephyr-module);$(tinyml zephyr-module)/boards"),
    ],
)
def test_a_manifest_without_the_module(
    board: str,
    modules: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = mock.Mock(module=None, our_module=ROOT)
    monkeypatch.setattr("tinyml.harness.zephyr.site.find_site", lambda: site)
    monkeypatch.delenv("EXTRA_ZEPHYR_MODULES", raising=False)
    assert make(tmp_path / "one", "-b", board) == 0
    said = capsys.readouterr().out
    assert f'export EXTRA_ZEPHYR_MODULES="{modules}"\nNext: west build -b {board}' in said
    assert "west build -t run" in said
    monkeypatch.setenv("EXTRA_ZEPHYR_MODULES", f"{ROOT};{ROOT / 'boards'}")
    assert make(tmp_path / "two", "-b", board) == 0
    assert "EXTRA_ZEPHYR_MODULES" not in capsys.readouterr().out
    lines = (tmp_path / "one" / "prj.conf").read_text().splitlines()
    assert "README.md says how" in lines[lines.index("CONFIG_TINYML=y") - 2]


def test_no_zephyr_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = mock.Mock(side_effect=ToolError("Zephyr was not found", "run it inside the workspace"))
    monkeypatch.setattr("tinyml.harness.zephyr.site.find_site", failing)
    assert make(tmp_path / "app", "-b", "nrf52840dk/nrf52840") == 0
    said = capsys.readouterr().out
    assert "A build needs Zephyr: Zephyr was not found" in said
    assert "--bare-metal" in said
    assert "&& west flash" in said


def test_odd_names_in_a_makefile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blanks, quotes, dollars and umlauts in the names of folder, model and classes; for this computer."""
    if not shutil.which("make"):
        pytest.skip("no make")
    app, model = tmp_path / "an app", tmp_path / "my mödel $x.onnx"
    shutil.copy(DIGITS, model)
    odd = ["it's", 'a "b"', "c\\n$d%s", "ü*/", "#", "`id`", "a b", "&;", "<>", "9"]
    assert make(app, "--bare-metal", "--target", "host", "--classes", ",".join(odd), model=model) == 0
    assert f"make -C '{app}' run" in capsys.readouterr().out
    tool = tmp_path / "tinyml"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m tinyml "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["make", "-C", str(app), "run", "library"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said
    assert "PASS" in said
    assert any(f": {name} (" in said for name in odd), said


@pytest.mark.parametrize("sample", ["digits", "vibration"])
def test_a_makefile_runs_and_makes_a_library(sample: str, tmp_path: Path) -> None:
    """Scores and a single number; the shell's `tinyml` is this one."""
    if not shutil.which("make") or not shutil.which("arm-none-eabi-gcc"):
        pytest.skip("no make or no compiler for Arm")
    app = tmp_path / "app"
    model = SAMPLES / sample / "model.onnx"
    assert make(app, "--bare-metal", "--target", "cortex-m4", model=model) == 0

    tool = tmp_path / "tinyml"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m tinyml "$@"\n')
    tool.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    command = ["make", "-C", str(app), "run", "library", "CFLAGS=-O1 -Wall -Wextra -Werror"]
    done = subprocess.run(
        command,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "plugin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: the result is as the computer's" in done.stdout
    assert (app / "build" / "libmodel.a").stat().st_size > 1000


def test_external_data_comes_along(tmp_path: Path) -> None:
    """As torch writes models."""
    weights = numpy_helper.from_array(np.ones((64, 4), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [weights],
    )
    given = tmp_path / "given"
    given.mkdir()
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        given / "big.onnx",
        save_as_external_data=True,
        location="big.onnx.data",
        size_threshold=0,
    )
    assert make(tmp_path / "app", model=given / "big.onnx") == 0
    assert (tmp_path / "app" / "models" / "big.onnx.data").is_file()


REFUSED = {
    "no model": (("-b", "qemu_cortex_m3"), "nowhere.onnx", "there is no file"),
    "a board that nobody knows": (("-b", "qemu_cortex_m33333"), "", "qemu_cortex_m33333"),
    "a misspelt target": (("--target", "cortex-m44"), "", "cortex-m44"),
    "PlatformIO without a platform": (("--platformio", "-b", "uno"), "", "platform and the framework of uno"),
    "a platform without PlatformIO": (("--platform", "ststm32"), "", "are PlatformIO's"),
    "a name that C does not take": (("--name", "my-model"), "", "cannot be a model's name"),
}


@pytest.mark.parametrize("words, model, message", REFUSED.values(), ids=REFUSED)
def test_refused(
    words: tuple[str, ...], model: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / model if model else DIGITS
    assert make(tmp_path / "app", *words, model=path) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert make(tmp_path) == 1
    assert "already exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_board_without_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the setting that fits, as the option of this command."""
    small = Board("small", "cortex-m4", 1000, 100_000, 64.0)
    with mock.patch("tinyml.harness.zephyr.boards.find_board", return_value=small):
        assert make(tmp_path / "app", "-b", "small") == 1
    said = capsys.readouterr().err
    assert "try: `--optimize ram` (" in said
    assert "rows" not in said  # this command's programs pass whole inputs
    assert not (tmp_path / "app").exists()


GESTURES = ("normalize", "axes=3", "rate=50", "stride=16", "mean=0,0,9.81", "std=4")
SOURCES = {
    "microphone": ("wake_word", ["--frontend", "micro", "--frontend", "step_ms=10"], "replay.wav"),
    "accelerometer": (
        "gesture",
        [word for setting in GESTURES for word in ("--frontend", setting)],
        "replay.csv",
    ),
    "camera": ("person", [], "replay.png"),
    "csv": ("digits", [], "data.csv"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_inputs_from_a_source(source: str, tmp_path: Path) -> None:
    """The program feeds the model from it, and boards without the device replay a recording that fits."""
    sample, words, replayed = SOURCES[source]
    app = tmp_path / "app"
    model = str(ROOT / "samples" / sample / "model.onnx")
    assert main(["new", str(app), "--model", model, "--name", "net", "--from", source, *words]) == 0
    program = (app / "src" / "main.c").read_text()
    assert ("net_feed(" in program) == bool(words)
    assert "decide(" in program
    assert not (app / "src" / "sample.h").exists()
    assert "has" in (app / "sample.yaml").read_text() or "have ended" in (app / "sample.yaml").read_text()
    if source == "csv":
        rows = (app / replayed).read_text().splitlines()
        assert {len(row.split(",")) for row in rows} == {64}
        assert "file(STRINGS data.csv rows)" in (app / "CMakeLists.txt").read_text()
        return
    assert f'recording = "{replayed}"' in (app / "app.overlay").read_text()
    options = {"microphone": ["--rate", "16000"], "accelerometer": ["--channels", "3"]}
    pictures = ["--width", "32", "--height", "32"]
    script = ROOT / "zephyr_module" / "scripts" / "recording.py"
    checked = [sys.executable, str(script), str(app / replayed), "x.c", "--name", "x", "--check"]
    subprocess.run([*checked, *options.get(source, pictures)], check=True)


def test_rows_of_a_given_csv_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They become data.csv and the inputs of the test; a file that is no text is refused in words."""
    rows = [",".join(f"{(i * j) % 7 / 7:.4f}" for j in range(64)) for i in range(1, 4)]
    (tmp_path / "good.csv").write_text("\n".join(rows))
    assert make(tmp_path / "app", "--from", "csv", "--input", str(tmp_path / "good.csv")) == 0
    found = np.loadtxt(tmp_path / "app" / "data.csv", delimiter=",")
    assert found.shape == (3, 64)
    assert np.allclose(found, np.loadtxt(rows, delimiter=","), atol=0.05)  # in steps of the model's input
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00\x01")
    assert make(tmp_path / "other", "--from", "csv", "--input", str(tmp_path / "bad.csv")) == 1
    assert "bad.csv is not text in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, message",
    [
        (["--from", "microphone"], "--from microphone needs a front end"),
        (
            ["--from", "accelerometer", "--frontend", "micro", "--frontend", "step_ms=10"],
            "an accelerometer gives 3 x float",
        ),
        (["--from", "csv", "--platformio"], "makes an application for Zephyr"),
    ],
)
def test_sources_that_do_not_fit(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ROOT / "samples" / ("wake_word" if "micro" in words else "digits") / "model.onnx"
    assert main(["new", str(tmp_path / "app"), "--model", str(model), *words]) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "app").exists()


def test_settings_that_an_error_about_memory_suggests_are_options(tmp_path: Path) -> None:
    app = tmp_path / "app"
    words = ["new", str(app), "--bare-metal", "--model", str(DIGITS), "--io", "int8", "--optimize", "ram"]
    assert main(words) == 0
    assert "--io int8" in (app / "Makefile").read_text()
    assert "--optimize ram" in (app / "Makefile").read_text()
