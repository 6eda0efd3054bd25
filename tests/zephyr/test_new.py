# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An application that `west tinyml new` made builds, runs and passes its own test, as it is.

In `make test`, `test_twister.py` has such an application.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zephyr.building import DIGITS, TWISTER_SECONDS, run, twister, west_build

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)
NATIVE = "native_sim/native/64"
BOARDS = (
    "qemu_cortex_m3",
    "mps2/an385",
    "mps2/an386",
    "qemu_cortex_m4",
    "qemu_cortex_m7",
    "mps3/corstone300/an547",
)


@pytest.mark.deep
@pytest.mark.parametrize("board", [NATIVE, *BOARDS])
def test_a_new_application_passes_its_own_tests(board: str, tmp_path: Path) -> None:
    app = tmp_path / "app"
    words: list[str | Path] = ["--model", DIGITS / "model.onnx", "--name", "digits", "-b", board]
    run(["west", "tinyml", "new", app, *words], tmp_path)
    ended = twister([app], [board], tmp_path)
    assert set(ended.values()) == {"passed"}, ended
    assert {name.rpartition("/")[2] for name, _ in ended} == {"app.digits", "tinyml.digits"}


SOURCES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("microphone", "wake_word", ("micro", "step_ms=10")),
    ("accelerometer", "gesture", ("normalize", "rate=50", "axes=3", "stride=16", "mean=0,0,9.81", "std=4")),
    ("camera", "person", ()),
    ("csv", "digits", ()),
)


@pytest.mark.deep
@pytest.mark.parametrize("source, sample, frontend", SOURCES)
def test_a_new_application_with_a_stream(
    source: str, sample: str, frontend: tuple[str, ...], tmp_path: Path
) -> None:
    """It replays a recording to its end, on an emulated core and on this computer."""
    app = tmp_path / "app"
    words: list[str | Path] = ["--model", DIGITS.parent / sample / "model.onnx", "--name", "net"]
    words += [word for setting in frontend for word in ("--frontend", setting)]
    run(["west", "tinyml", "new", app, *words, "--from", source], tmp_path)
    ended = twister([app], ["qemu_cortex_m3", NATIVE], tmp_path)
    assert set(ended.values()) == {"passed"}, ended


@pytest.mark.deep
def test_layers_in_traces(tmp_path: Path) -> None:
    """Two events for each of the six layers that do something, in every one of eight runs."""
    app = tmp_path / "app"
    words: list[str | Path] = ["--model", DIGITS / "model.onnx", "--name", "digits", "--from", "csv"]
    run(["west", "tinyml", "new", app, *words], tmp_path)
    options = ("TRACING", "TRACING_SYNC", "TRACING_CTF", "TRACING_BACKEND_POSIX", "TINYML_TRACING")
    with (app / "prj.conf").open("a") as file:
        file.writelines(f"CONFIG_{option}=y\n" for option in options)
    build = west_build(app, tmp_path / "build", NATIVE)
    program = build.folder / "zephyr" / "zephyr.exe"
    run([program, f"-trace-file={tmp_path / 'trace'}", "-stop_at=2"], tmp_path)
    assert (tmp_path / "trace").read_bytes().count(b"tinyml layer") == 8 * 6 * 2
