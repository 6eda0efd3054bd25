# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Generated files belong together; caches repair themselves; a model is read once."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import offline
from tinyml import importers
from tinyml.base.errors import ConfigError
from tinyml.emit.output_folder import write_files
from tinyml.harness import objects
from tinyml.harness.tools import host_compiler
from tinyml.importers import model_file
from tinyml.pipeline import Options, compile_model
from tinyml.quantize import cache
from tinyml.settings.quantize_request import Request
from tools import reproducible

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
FLOAT = ROOT / "samples" / "digits" / "model_float.onnx"
RUNTIME = ROOT / "plugin" / "tinyml" / "runtime" / "include"


def test_c_refuses_headers_of_another_compilation(tmp_path: Path) -> None:
    first = compile_model(DIGITS, Options("digits", "host")).files
    second = compile_model(FLOAT, Options("digits", "host", io="caller")).files
    command = ["gcc", "-std=c11", f"-I{RUNTIME}", "-c", f"{tmp_path}/digits.c", "-o", f"{tmp_path}/digits.o"]
    write_files(tmp_path, first)
    subprocess.run(command, check=True)
    for stale in ("digits_weights.h", "digits.h"):
        write_files(tmp_path, {**first, stale: second[stale]})
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "needs the header and the tables that were generated with it" in done.stderr


def test_nothing_changes_if_one_file_cannot_be_written(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.c": "old", "a.h": "old"})
    with pytest.raises(ConfigError):
        write_files(tmp_path, {"a.c": "new", "a.h": "new", "missing/folder.h": "new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.c": "old", "a.h": "old"}


def test_sources_are_written_last(tmp_path: Path) -> None:
    """Who is killed before leaves a source older than the model, and the build makes the set again."""
    changed = write_files(tmp_path, {"a.c": "1", "a.h": "1", "a_weights.h": "1", "a.json": "1"})
    assert changed[-1].name == "a.c"


def test_two_processes_never_mix_their_files(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tinyml.emit.output_folder import write_files\n"
        "for _ in range(40): write_files(Path(sys.argv[1]), {f'{i}.h': sys.argv[2] for i in range(8)})\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, tmp_path, word]) for word in ("one", "two")]
    assert [process.wait() for process in running] == [0, 0]
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 1


def test_a_model_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is replaced meanwhile is not hashed with the content of the old one."""
    path = tmp_path / "model.onnx"
    shutil.copy(DIGITS, path)
    before = model_file.read_model(path)
    read: Callable[..., Any] = importers.read

    def replaced(*arguments: Any) -> Any:
        path.write_bytes(b"something else")
        return read(*arguments)

    monkeypatch.setattr(importers, "read", replaced)
    compiled = compile_model(path, Options("digits"))
    assert compiled.summary["sha256"] == before.sha256


def test_a_broken_object_is_compiled_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "a.c"
    source.write_text("int a(void);\nint a(void) { return 1; }\n")
    unit = objects.Unit(source, "runtime", ("-O1",))
    (compiled,) = objects.compile_all(host_compiler(), [unit])
    whole = compiled.read_bytes()
    compiled.write_bytes(whole[: len(whole) // 2])
    assert objects.compile_all(host_compiler(), [unit]) == [compiled]
    assert compiled.read_bytes() == whole


def test_a_broken_cache_entry_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    from tests.support.quantizing import write_calibration

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    request = Request(write_calibration(tmp_path), method="minmax")
    float_model = model_file.read_model(FLOAT)
    first = cache.quantized(float_model, request)
    (entry,) = (tmp_path / "cache" / "west-tinyml" / "quantized").iterdir()
    for file in ("model.onnx", "report.json"):
        content = (entry / file).read_bytes()
        (entry / file).write_bytes(content[: len(content) // 2])
        assert cache.quantized(float_model, request).content == first.content
        assert (entry / file).read_bytes() == content


def compiled_in(folder: Path, **environment: str) -> dict[str, bytes]:
    """The files of a command that runs in ``folder``."""
    folder.mkdir(parents=True)
    shutil.copy(DIGITS, folder / "digits.onnx")
    path = {"PYTHONPATH": str(ROOT / "plugin"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "tinyml", "compile", "digits.onnx", "-o", "out", "--kernels", "portable"]
    subprocess.run(command, cwd=folder, env={**path, **environment}, check=True, capture_output=True)
    return {file.name: file.read_bytes() for file in (folder / "out").iterdir()}


def test_the_same_bytes_from_another_folder_and_locale(tmp_path: Path) -> None:
    first = compiled_in(tmp_path / "a", LC_ALL="C", PYTHONHASHSEED="1", TZ="UTC")
    second = compiled_in(
        tmp_path / "another folder" / "b",
        LC_ALL="de_DE.UTF-8",
        PYTHONHASHSEED="77",
        TZ="Asia/Tokyo",
        PYTHONUTF8="1",
    )
    assert first == second


def test_compiling_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("the compiler opened a socket")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    compile_model(DIGITS, Options("digits"))


def test_the_same_bytes_from_another_python() -> None:
    other = reproducible.ready()
    if other is None:
        pytest.skip("no other Python has the compiler's packages: python -m tools.reproducible --make")
    ours = reproducible.digests(Path(sys.executable))
    assert len(ours) >= 12
    assert reproducible.digests(other[1]) == ours


def test_compiling_and_building_need_no_network(tmp_path: Path) -> None:
    """A build with Zephyr does not either: tests/zephyr/test_build.py."""
    if not offline.permitted():
        pytest.skip(offline.WHY_NOT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin"), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tinyml", "verify", str(DIGITS), "--samples", "1"]
    done = subprocess.run(
        [*offline.ALONE, *command], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "agrees on host" in done.stdout
