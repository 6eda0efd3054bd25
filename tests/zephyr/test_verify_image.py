# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`verify` and `profile` inside Zephyr images, and over a serial port that native_sim emulates."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

import tinyml
from tests.zephyr.building import DIGITS, change_model, copy_of_digits, run, symbols
from tinyml.base.errors import ConfigError
from tinyml.cores.toolchains import RISCV
from tinyml.harness.zephyr import Build
from tinyml.verbs.cli import main

NATIVE = "native_sim/native/64"
MODEL = str(DIGITS / "model.onnx")

# Where there are tools for RISC-V, test_riscv.py counts in `make test`.
counted_elsewhere = pytest.mark.usefixtures() if [*RISCV.missing()] else pytest.mark.deep

# A fault to be found: one layer is left out.
SKIPS_A_LAYER = """\
#define TINYML_WRAP_LAYER(index, call) do { if ((index) != 3) { call; } } while (0)
"""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("builds")


@pytest.fixture(scope="module")
def app(builds: Path) -> Path:
    """An application whose image for native_sim several tests use: it is built once."""
    return copy_of_digits(builds / "app")


def test_an_image_agrees(builds: Path) -> None:
    """From any folder, by the name that the application has for the model."""
    image: list[str | Path] = ["-b", "qemu_cortex_m3", "-d", builds / "m3"]
    said = run(["west", "tinyml", "verify", "digits", "--app", DIGITS, *image], builds)
    assert "agrees on qemu_cortex_m3 (Zephyr image) with onnxruntime" in said
    assert "40 of 40 values equal" in said
    assert "no Zephyr image" not in said
    with tinyml.connect(builds / "m3" / "build") as device:
        check_device(device)
    with emulated_by_hand(builds / "m3" / "build") as terminal, tinyml.connect(terminal) as device:
        check_device(device)


def check_device(device: tinyml.Device) -> None:
    """The object that `tinyml.connect` returns computes what the C on this computer computes."""
    assert list(device.models) == ["digits"]
    rows = np.random.default_rng(3).random((3, 1, 8, 8), np.float32)
    found = device.run("digits", rows)
    assert np.array_equal(found["logits"], tinyml.run(MODEL, rows)["logits"])
    decisions = found["logits"].argmax(axis=1)
    assert device.evaluate(rows, decisions, against=MODEL).accuracy == 1.0
    with pytest.raises(ConfigError, match="has no slots for models"):
        device.deploy(DIGITS / "no.tmodel")


@contextmanager
def emulated_by_hand(build: Path) -> Iterator[str]:
    """QEMU as a user starts it, with the serial port on a pseudo terminal."""
    quiet = ["-display", "none", "-monitor", "none", "-serial", "pty"]
    machine = ["-machine", "lm3s6965evb", "-cpu", "cortex-m3"]
    command = ["qemu-system-arm", *machine, *quiet, "-kernel", str(build / "zephyr" / "zephyr.elf")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            found = re.search(r"redirected to (\S+)", emulator.stdout.readline())
            assert found is not None
            yield found[1]
        finally:
            emulator.kill()


@pytest.mark.deep
def test_a_wrong_layer_is_named(builds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = builds / "fault.h"
    fault.write_text(SKIPS_A_LAYER)
    image = ["-b", "qemu_cortex_m3", "-d", str(builds / "m3"), f"--cmake=-DEXTRA_CFLAGS=-include{fault}"]
    assert main(["verify", MODEL, "--name", "digits", *image]) == 3
    said = capsys.readouterr().out
    assert "differs on qemu_cortex_m3 (Zephyr image) from onnxruntime" in said
    assert re.search(
        r"layer 3, Conv 'conv2' .* is the first that differs from numpy on the same inputs", said
    )


@counted_elsewhere
def test_layers_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Instructions, as many as without Zephyr: its flags for the compiler must not make models slower.

    The first layer is a chain that is called for each band, as soon as the rows for it have arrived.
    """
    kernels = ["--io", "rows", "--kernels", "portable", "--json"]
    image, bare = tmp_path / "image.json", tmp_path / "bare.json"
    assert main(["profile", MODEL, *kernels, str(image), "-b", "qemu_cortex_m3"]) == 0
    assert "counted by QEMU" in capsys.readouterr().out
    assert main(["profile", MODEL, *kernels, str(bare), "--on", "qemu-cortex-m3"]) == 0
    reports = [json.loads(path.read_text()) for path in (image, bare)]
    counts = [{layer["label"]: layer["instructions"] for layer in report["layers"]} for report in reports]
    assert abs(counts[0]["dense"] - counts[1]["dense"]) < 10
    total = reports[0]["profile"]["total"]
    assert reports[0]["profile"]["unit"] == "instructions"
    assert abs(sum(layer["instructions"] for layer in reports[0]["layers"]) - total) < 0.02 * total
    assert abs(total - reports[1]["measured"]["instructions"]) < 0.03 * total


def test_native_sim_agrees_but_cannot_count(
    builds: Path, app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = ["-b", NATIVE, "-d", str(builds / "native")]
    assert main(["verify", "digits", "--app", str(app), *image]) == 0
    with tinyml.connect(builds / "native" / "build") as device:
        check_device(device)
    assert main(["profile", MODEL, "--name", "digits", *image]) == 1
    assert "clock does not advance" in capsys.readouterr().err


@pytest.mark.deep
def test_the_image_has_the_memories_of_the_application(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The arena is where an overlay puts it, and the weights are where tinyml.yaml puts them.

    A float model has the FPU there, and the command says that the application turns it off.
    """
    app = copy_of_digits(tmp_path / "app")
    copyfile(DIGITS / "model_float.onnx", app / "model.onnx")
    with (app / "prj.conf").open("a") as config:
        config.write("CONFIG_FPU=n\n")
    (app / "app.overlay").write_text("/ { chosen { tinyml,arena = &psram0; }; };\n")
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    weights: psram0\n")
    image = ["-b", "qemu_cortex_m4", "-d", str(tmp_path / "image")]
    assert main(["verify", "digits", "--app", str(app), *image]) == 0
    said = capsys.readouterr().out
    assert "lacks" not in said
    assert "layers compute in float. This image has CONFIG_FPU=y, the application's prj.conf turns it" in said
    config_of_image = (tmp_path / "image" / "build" / "zephyr" / ".config").read_text().splitlines()
    assert {"CONFIG_FPU=y", "CONFIG_FPU_SHARING=y"} <= set(config_of_image)
    names = symbols(tmp_path / "image" / "build" / "zephyr" / "zephyr.elf")
    assert names["digits_arena"][2] == "PSRAM"
    assert "tinyml_weights_PSRAM" in {section for _, _, section in names.values()}


@pytest.mark.deep
def test_a_board_without_the_memories_of_the_application(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = copy_of_digits(tmp_path / "app")
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    arena_region: dtcm\n")
    assert main(["verify", "digits", "--app", str(app), "-b", NATIVE]) == 0
    said = capsys.readouterr().out
    assert f"{NATIVE} lacks what" in said
    assert "(arena_region: dtcm, of model digits)" in said
    assert f"agrees on {NATIVE}" in said


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", MODEL, "-b", "no_such_board"]) == 1
    said = capsys.readouterr()
    assert "Zephyr has no board called 'no_such_board'" in said.err
    assert "building" not in said.out


@dataclass
class Bench:
    """A board on the desk: flashing it starts native_sim, whose terminal then has the port's name."""

    port: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def flash(self, build: Build) -> None:
        self.stop()
        board = subprocess.Popen(
            [build.folder / "zephyr" / "zephyr.exe"],
            cwd=build.folder,  # for the file of the simulated flash
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.running.append(board)
        assert board.stdout is not None
        found = next(found for line in board.stdout if (found := re.search(r"pseudotty: (\S+)", line)))
        self.port.unlink(missing_ok=True)
        threading.Timer(0.5, self.port.symlink_to, [found[1]]).start()  # as a USB device comes, a bit later

    def stop(self) -> None:
        for board in self.running:
            os.killpg(board.pid, signal.SIGKILL)
            board.wait()
        self.running.clear()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    pytest.importorskip("serial")
    desk = Bench(tmp_path / "ttyBoard")
    monkeypatch.setattr(Build, "flash", lambda build: desk.flash(build))
    yield desk
    desk.stop()


def test_over_a_serial_port(
    bench: Bench, builds: Path, app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flashed and compared; then the same image without flashing; then with another model on the board."""
    board = ["--app", str(app), "-b", NATIVE, "-d", str(builds / "native"), "--serial", str(bench.port)]
    assert main(["verify", "digits", *board]) == 0
    said = capsys.readouterr().out
    assert f"there is no serial port {bench.port} yet (ports here: " in said
    assert "waiting for it once the board is flashed" in said
    assert f"agrees on {NATIVE} ({bench.port}) with onnxruntime" in said
    assert main(["verify", "digits", *board, "--no-flash"]) == 0
    capsys.readouterr()
    change_model(app / "model.onnx")
    assert main(["verify", "digits", *board, "--no-flash"]) == 1
    assert "has a different model: digits (SHA-256 " in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    "port,options,words",
    [
        ("nothing", ["--no-flash"], "there is no serial port"),
        ("a_file", ["--no-flash"], "cannot open the serial port"),
        ("a_file", [], "cannot open the serial port"),
    ],
)
def test_a_wrong_port_is_found_before_anything_is_built(
    port: str,
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("serial")
    monkeypatch.setattr(Build, "make", lambda *_: pytest.fail("built"))
    (tmp_path / "a_file").touch()
    assert main(["verify", MODEL, "-b", NATIVE, "--serial", str(tmp_path / port), *options]) == 1
    said = capsys.readouterr().err
    assert f"{words} {tmp_path / port}" in said
    assert "ports here: " in said


@pytest.mark.deep
def test_a_wrong_layer_over_a_serial_port(
    bench: Bench, builds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The search puts another image on the board; where it may not, they differ all the same."""
    (tmp_path / "fault.h").write_text(SKIPS_A_LAYER)
    board = ["-b", NATIVE, "-d", str(builds / "native"), "--serial", str(bench.port)]
    fault = f"--cmake=-DEXTRA_CFLAGS=-include{tmp_path / 'fault.h'}"
    assert main(["verify", MODEL, "--name", "digits", *board, fault]) == 3
    assert "layer 3, Conv 'conv2'" in capsys.readouterr().out
    assert len(bench.running) == 1
