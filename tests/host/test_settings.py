# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One table of settings: a new one is one entry, and every place accepts it and refuses other values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.test_npu import needs_vela
from tinyml.base.errors import ConfigError
from tinyml.settings import table
from tinyml.settings.options import Options
from tinyml.settings.passing import SPELLINGS, Io
from tinyml.settings.setting import CMAKE, COMMAND, INI, YAML
from tinyml.verbs.cli import main
from tools import settings_docs

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plugin" / "tinyml"
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
ENTRY = '    toy: Setting[str, str] = Setting("one", Choice(("one", "two", "three")), "a toy")\n'


def with_a_toy(folder: Path) -> Path:
    """The package with one more entry in its table; everything else is the package itself."""
    copy = folder / "plugin" / "tinyml"
    (copy / "settings").mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name not in ("settings", "__pycache__"):
            (copy / path.name).symlink_to(path)
    for path in (PACKAGE / "settings").glob("*.py"):
        text = path.read_text()
        if path.name == "options.py":
            mark = "    # Of the build and of tests, not of a model.\n"
            assert mark in text
            text = text.replace(mark, ENTRY + mark).replace("import DataFile,", "import Choice, DataFile,")
        (copy / "settings" / path.name).write_text(text)
    return copy.parent


def run(folder: Path, *words: object, fails: bool = False) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "plugin"), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


PYTHON = """
from pathlib import Path
import tinyml
from tinyml.base.errors import ConfigError
from tinyml.projects import cmake
from tinyml.projects.manifest import load
from tinyml.projects.platformio.boards import Board
from tinyml.projects.platformio.project import read_models

def refused(what, call):
    try:
        call()
    except ConfigError as error:
        assert what in str(error), str(error)
    else:
        raise AssertionError(what)

found = tinyml.compile("digits.onnx", toy="two")
assert "toy two" in found.files["digits.c"], found.files["digits.c"][:600]
refused("toy cannot be 'four'", lambda: tinyml.compile("digits.onnx", toy="four"))
refused("no setting 'tyo'; did you mean toy?", lambda: tinyml.compile("digits.onnx", tyo="two"))

(entry,) = load(Path("app/tinyml.yaml")).models
assert entry.toy == "three"
assert entry.options(Path("app")).toy == "three"
Path("bad.yaml").write_text("models: [{name: a, file: digits.onnx, toy: four}]")
refused("bad.yaml:1:39: model 1: toy cannot be 'four'", lambda: load(Path("bad.yaml")))
assert "[=[TOY]=] [=[three]=]" in cmake.calls(Path("app/tinyml.yaml"))
Path("arguments.cmake").write_text(cmake.arguments())

(model,) = read_models(Path(), {"custom_tinyml_toy": "two"}, Board(), cmsis_nn=False)
assert model.options.toy == "two" and "two" in model.key("")
refused(
    "custom_tinyml_toy: toy cannot be 'four'",
    lambda: read_models(Path(), {"custom_tinyml_toy": "four"}, Board(), cmsis_nn=False),
)
"""

CMAKE_SCRIPT = """
include(arguments.cmake)
include({module}/zephyr_module/cmake/tinyml.cmake)
set(CONFIG_TINYML y)
set(APPLICATION_BINARY_DIR /build)
foreach(command tinyml_has_cmsis_nn tinyml_target tinyml_arena_node tinyml_weights_node tinyml_memory_limits
    tinyml_configure_library tinyml_place_weights tinyml_want_arena add_custom_target add_library
    add_dependencies set_target_properties tinyml_compile_now
    target_include_directories target_link_libraries)
  cmake_language(EVAL CODE "function(${{command}})\\nendfunction()")
endforeach()
function(add_custom_command)
  message("${{ARGN}}")
endfunction()
zephyr_tinyml_model(digits {folder}/digits.onnx {words})
"""


def test_a_new_setting_is_one_entry(tmp_path: Path) -> None:
    with_a_toy(tmp_path)
    (tmp_path / "digits.onnx").write_bytes(DIGITS.read_bytes())
    compile_digits = ["-m", "tinyml", "compile", "digits.onnx", "-o", "out", "--toy"]
    run(tmp_path, *compile_digits, "two")
    assert "toy two" in (tmp_path / "out" / "digits.c").read_text()
    assert "'tow' is not a value; did you mean two?" in run(tmp_path, *compile_digits, "tow", fails=True)

    app = tmp_path / "app"
    app.mkdir()
    for name, text in (("CMakeLists.txt", "find_package(Zephyr)\n"), ("prj.conf", "")):
        (app / name).write_text(text)
    (app / "digits.onnx").write_bytes(DIGITS.read_bytes())
    add = ["-m", "tinyml", "add", app / "digits.onnx", "--app", app]
    run(tmp_path, *add, "--toy", "two", "--classes", "0,1,2,3,4,5,6,7,8,9")
    run(tmp_path, *add, "--replace")
    assert "toy: two" in (app / "tinyml.yaml").read_text()
    run(tmp_path, *add, "--replace", "--toy", "three")
    assert "toy: three" in (app / "tinyml.yaml").read_text()
    assert "toy=three" in run(tmp_path, "-m", "tinyml", "list", "--app", app)
    run(tmp_path, "-c", PYTHON)

    for words, said in (("TOY three IO int8", "--toy=three"), ("TOI three", "unknown arguments: TOI;three")):
        script = CMAKE_SCRIPT.format(module=ROOT.as_posix(), folder=tmp_path.as_posix(), words=words)
        (tmp_path / "script.cmake").write_text(script)
        done = subprocess.run(["cmake", "-P", "script.cmake"], cwd=tmp_path, capture_output=True, text=True)
        assert said in done.stderr, done.stderr
        assert (done.returncode == 0) == (said == "--toy=three")


def test_every_place_names_the_same_settings() -> None:
    """The choices that do not go through CMake's or PlatformIO's build have no entry there."""
    assert {"kernels", "io", "optimize", "shapes", "npu"} <= {*table.settings(INI)}
    assert {*table.settings(CMAKE)} - {"budget", "arena_region", "weights"} <= {*table.settings(COMMAND)}
    assert {*table.settings(CMAKE)} <= {*table.settings(YAML)}


def test_the_reference_pages_are_up_to_date() -> None:
    assert settings_docs.PAGE.read_text() == settings_docs.page(), "run python -m tools.settings_docs"
    text = settings_docs.PLATFORMIO.read_text()
    assert settings_docs.platformio(text) == text, "run python -m tools.settings_docs"


@pytest.mark.parametrize("text", SPELLINGS)
def test_io_keeps_its_spelling(text: str) -> None:
    assert str(Io.of(text)) == text
    assert Io.of(list(reversed(text.split(",")))) == Io.of(text) == Options(io=text).io


@pytest.mark.parametrize("text", ["caller,rows", "arena,caller", "columns", "", "int8;rows"])
def test_io_that_there_is_not(text: str) -> None:
    with pytest.raises(ConfigError, match=f"inputs and outputs cannot be '{text}'"):
        Options(io=text)


@needs_vela
@pytest.mark.parametrize("io", ["caller,int8", "int8,caller", "caller"])
def test_buffers_of_the_caller_and_an_npu(io: str, tmp_path: Path) -> None:
    """The NPU requires aligned memory, which the caller's buffers need not be: they are copied.

    Buffers of floats are quantised by the CPU, into the arena; there is nothing to copy.
    """
    compile_digits = ["compile", str(DIGITS), "--name", "digits", "--target", "cortex-m55"]
    assert main([*compile_digits, "--npu", "ethos-u55-128", "--io", io, "-o", str(tmp_path)]) == 0
    copies = "memcpy(&memory[" in (tmp_path / "digits.c").read_text()
    assert copies == ("int8" in io)
