# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The script by which a Zephyr build compiles models: once, when CMake configures, unless they change."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.host.test_pictures import load
from tinyml.emit.output_folder import write_depfile

ROOT = Path(__file__).parents[2]
SCRIPT = load(ROOT / "zephyr_module" / "scripts" / "compile_model.py")


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The arguments of the script for a model of its own."""
    model = tmp_path / "a model.onnx"
    shutil.copy(ROOT / "samples" / "digits" / "model.onnx", model)
    out = tmp_path / "out"
    compile_ = ["compile", str(model), "-o", str(out), "--name", "digits", "--depfile", str(out / "digits.d")]
    return [str(out), "digits", *compile_]


def test_a_fresh_model_is_not_compiled_again(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out, model = Path(words[0]), Path(words[3])
    assert SCRIPT.main(words) == 0
    assert "digits: 8 layers" in capsys.readouterr().out
    (out / "digits.fresh").touch()
    assert SCRIPT.main(words) == 0
    assert capsys.readouterr().out == ""
    assert not (out / "digits.fresh").exists(), "once"
    (out / "digits.fresh").touch()
    os.utime(model, (2**31, 2**31))
    assert SCRIPT.main(words) == 0
    assert "digits: 8 layers" in capsys.readouterr().out, "it has changed since"


def test_the_kernels_that_a_model_needs(words: list[str]) -> None:
    assert SCRIPT.main(words) == 0
    out = Path(words[0])
    kernels = out / "digits.kernels"
    needed = json.loads((out / "digits.json").read_text())["sources"]["runtime"]
    assert kernels.read_text().split() == sorted(needed)
    os.utime(kernels, (1, 1))
    assert SCRIPT.main(words) == 0
    assert kernels.stat().st_mtime == 1, "CMake runs again only if the list changes"


def test_an_error_is_one(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(words[3]).write_bytes(b"no model")
    assert SCRIPT.main(words) == 1
    assert "a model.onnx" in capsys.readouterr().err
    assert not (Path(words[0]) / "digits.kernels").exists()


def test_dependencies_are_read_back(tmp_path: Path) -> None:
    sources = [tmp_path / "a model.onnx", tmp_path / "b.py"]
    write_depfile(tmp_path / "x.d", tmp_path / "out dir" / "x.c", sources)
    assert SCRIPT.sources(tmp_path / "x.d") == sources
    assert not SCRIPT.is_fresh(tmp_path, "x")


def test_ninja_compiles_first_for_the_kernels(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What that has compiled is not compiled again, and its errors wait for the second step."""
    out, model = Path(words[0]), Path(words[3])
    assert SCRIPT.main(["--kernels", *words]) == 0
    assert "digits: 8 layers" in capsys.readouterr().out
    assert (out / "digits.kernels.d").read_text().startswith(f"{out}/digits.kernels: ")
    assert SCRIPT.main(words) == 0
    assert capsys.readouterr().out == ""
    model.write_bytes(b"no model")
    assert SCRIPT.main(["--kernels", *words]) == 0
    assert capsys.readouterr() == ("", "")
    assert SCRIPT.main(words) == 1
    assert "a model.onnx" in capsys.readouterr().err


@pytest.mark.parametrize("end", [".h", "_weights.h", ".json", ".kernels"])
def test_a_model_is_not_fresh_without_all_of_its_files(words: list[str], end: str) -> None:
    assert SCRIPT.main(words) == 0
    out = Path(words[0])
    assert SCRIPT.is_fresh(out, "digits")
    (out / f"digits{end}").unlink()
    assert not SCRIPT.is_fresh(out, "digits")
