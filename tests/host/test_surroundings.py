# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands where the system does not cooperate: full disks, no home, interruptions, two at once."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyml as tinyml_api
from tinyml.base import whole_files
from tinyml.base.errors import ConfigError
from tinyml.datasets import arrays
from tinyml.emit.output_folder import write_depfile
from tinyml.projects import files, manifest
from tinyml.verbs.base import TERMINATED
from tinyml.verbs.cli import main
from tinyml.verbs.ops import Ops

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "samples" / "digits"


def tinyml(words: list[str], stdout: object = subprocess.PIPE, **variables: str) -> tuple[int, str, str]:
    """Run the command with other environment variables: exit code, stdout and stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin"), **variables}
    command = [sys.executable, "-m", "tinyml", *words]
    done = subprocess.run(command, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True)  # type: ignore[call-overload]
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr REQUIRED)\n")
    for name in ("model.onnx", "model_float.onnx"):
        (tmp_path / name).write_bytes((DIGITS / name).read_bytes())
    return tmp_path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout() -> None:
    with Path("/dev/full").open("w") as full:
        code, _, said = tinyml(["ops"], stdout=full)
    assert code == 1
    assert said.startswith("error: No space left on device\n")
    assert "Traceback" not in said
    assert "Exception" not in said


def test_a_terminal_without_unicode() -> None:
    code, listed, said = tinyml(["ops"], PYTHONIOENCODING="ascii", COLUMNS="60")
    assert (code, said) == (0, "")
    assert "\\u2026" in listed


def test_a_console_without_width() -> None:
    assert "Softmax" in tinyml(["ops"], COLUMNS="0")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a folder in use")
def test_a_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["list"]) == 1
    assert "the current folder no longer exists" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("home", ["a_file", "missing/deeply"])
def test_a_home_that_cannot_be_written(home: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("")
    (tmp_path / "missing").write_text("")
    code, _, said = tinyml(["run", str(DIGITS / "model.onnx")], XDG_CACHE_HOME=str(tmp_path / home))
    assert (code, said) == (0, "")


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyml.setup.workspace import cache_folder

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert not cache_folder().exists()


def test_names_that_are_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"{'x' * 300}.onnx"]) == 1
    assert "File name too long" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_sigterm_tidies_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tidied = []

    def terminated(*_: object) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            tidied.append(True)
        return 0

    monkeypatch.setattr(Ops, "run", terminated)
    assert main(["ops"]) == TERMINATED
    assert tidied == [True]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interruption_between_two_files_changes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    commit = files._commit

    def interrupted(path: Path, finished: Path | None) -> None:
        commit(path, finished)
        if path == first:
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "_commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.replace_all({first: b"new", second: b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
    assert first.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="links require privileges")
def test_a_link_stays_a_link(app: Path) -> None:
    (app / "shared").mkdir()
    (app / "shared" / "models.yaml").write_text("models: []\n")
    (app / "tinyml.yaml").symlink_to("shared/models.yaml")
    assert main(["-q", "add", str(app / "model.onnx"), "--app", str(app)]) == 0
    assert (app / "tinyml.yaml").is_symlink()
    assert "name: model" in (app / "shared" / "models.yaml").read_text()


def test_two_commands_at_once_lose_nothing(app: Path) -> None:
    codes = []

    def add(name: str) -> None:
        words = ["add", str(app / "model.onnx"), "--app", str(app), "--name", name]
        codes.append(tinyml(words)[0])

    threads = [threading.Thread(target=add, args=(name,)) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0, 0]
    assert {entry.name for entry in manifest.load(app / "tinyml.yaml").models} == {"one", "two", "three"}
    assert (app / "prj.conf").read_text().count("CONFIG_TINYML=y") == 1


def test_a_name_that_another_command_took_meanwhile(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyml.verbs import add

    def meanwhile(*_: object) -> list[str]:
        (app / "tinyml.yaml").write_text("models:\n  - name: model\n    file: model_float.onnx\n")
        return []

    monkeypatch.setattr(add, "_differences", meanwhile)
    assert main(["add", str(app / "model.onnx"), "--app", str(app)]) == 1
    assert "file: model.onnx" not in (app / "tinyml.yaml").read_text()


def test_ctrl_c_while_the_command_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("tinyml.verbs.base.main", interrupted)
    assert main(["ops"]) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


def test_rules_name_only_what_ninja_can_read(tmp_path: Path) -> None:
    write_depfile(tmp_path / "d", Path("kws.c"), [Path("a b.onnx"), Path("we $x'#.onnx"), Path("c.py")])
    assert (tmp_path / "d").read_text() == "kws.c: \\\n  a\\ b.onnx \\\n  c.py\n"


@pytest.mark.parametrize("option", ["--html", "--json", "--markdown"])
def test_a_file_that_cannot_be_finished_stays_as_it_was(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.write_text("before")
    full_disk(monkeypatch)
    assert main(["report", str(DIGITS / "model.onnx"), option, str(out)]) == 1
    assert f"cannot write {out}: No space left on device" in capsys.readouterr().err
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_arrays_and_models_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tinyml_api.load(DIGITS / "model.onnx")._graph
    full_disk(monkeypatch)
    with pytest.raises(ConfigError, match="No space left"):
        arrays.save_outputs(tmp_path / "x.npz", graph, [{"logits": np.zeros((1, 10), np.float32)}])
    with pytest.raises(ConfigError, match="No space left"):
        tinyml_api.load(DIGITS / "model.onnx").save(tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files get their first byte only."""
    opened = Path.open

    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(b"x")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open_(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        return (
            Full(path, mode.replace("b", "")) if set(mode) & set("wx") else opened(path, mode, *rest, **more)
        )

    monkeypatch.setattr(Path, "open", open_)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no /dev")
def test_devices_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    whole_files.save(tmp_path / "pipe", "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_the_float_model_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes((DIGITS / "model_float.onnx").read_bytes())
    assert main(["quantize", str(model), "-o", str(model), "--calibration", "x.npz"]) == 1
    assert "is a file that this command reads, and would be lost" in capsys.readouterr().err


def test_two_results_do_not_become_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report would replace the model."""
    model, name = DIGITS / "model_float.onnx", str(tmp_path / "q.onnx")
    again = str(tmp_path / "a" / ".." / "q.onnx")
    assert main(["quantize", str(model), "--calibration", "x.npz", "-o", name, "--report", again]) == 1
    assert "two results of this command would be written to" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["cmsis-pack"], ["arduino"], ["esp-idf"], ["web"], ["pack", "--data"], ["run", "--input"]]
)
def test_no_command_overwrites_what_it_reads(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = tmp_path / "m.onnx", tmp_path / "x.npz"
    model.write_bytes((DIGITS / "model.onnx").read_bytes())
    data.write_bytes(b"data")
    verb, *more = words
    written = data if more == ["--input"] else model
    more += [str(data)] if more == ["--input"] else []
    option = "--output" if verb == "run" else "-o"
    assert main([verb, str(model), *more, option, str(written)]) == 1
    assert "is a file that this command reads, and would be lost" in capsys.readouterr().err
    assert model.read_bytes() == (DIGITS / "model.onnx").read_bytes()
    assert data.read_bytes() == b"data"


@pytest.mark.parametrize(
    "words, suffix",
    [
        (["cmsis-pack"], ".pack"),
        (["web"], ".html"),
        (["pack", "--data"], ".tmodel"),
        (["evidence", "-d", "build"], ".zip"),
    ],
)
def test_names_of_written_files(
    words: list[str], suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that the command does not read could still be lost."""
    precious = tmp_path / "precious.txt"
    precious.write_text("text")
    model = [] if "evidence" in words else [str(DIGITS / "model.onnx")]
    assert main([*words, *model, "-o", str(precious)]) == 1
    said = capsys.readouterr().err
    assert f"precious.txt does not end in {suffix}" in said
    assert f"-o precious{suffix}" in said
    assert precious.read_text() == "text"


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["quantize", "m.onnx", "--data", "x.npz", "-o", "q.onnx"],
            "--data x.npz; did you mean --calibration?",
        ),
        (["quantize", "m.onnx", "--data=x.npz"], "no --data; did you mean --calibration?"),
        (["quantize", "m.onnx", "--calibratoin", "x", "-o", "q.onnx"], "did you mean --calibration?"),
    ],
)
def test_another_option_than_the_required_one(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("place", ["arena_bytes", "macs", "deep"])
def test_reports_that_were_changed_by_hand(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, old = str(DIGITS / "model.onnx"), tmp_path / "old.json"
    assert main(["report", model, "--json", str(old)]) == 0
    written = json.loads(old.read_text())
    old.write_text("[" * 100_000 if place == "deep" else json.dumps({**written, place: {}}))
    assert main(["report", model, "--against", str(old)]) == 1
    assert "old.json is not a report" in capsys.readouterr().err
