# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tutorials of docs/: every command and every script as written, where the framework is installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinyml.harness.program_build import WARNINGS
from tinyml.verbs.cli import main

ROOT = Path(__file__).parents[2]
TUTORIALS = {
    "first_model": (),
    "scikit_learn": ("skl2onnx",),
    "pytorch": ("torch",),
    "keras": ("tensorflow",),
}
"""Each with the modules that it needs."""


def page(name: str) -> str:
    return (ROOT / "docs" / f"tutorial_{name}.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    return re.findall(r"^    ((?:python|tinyml|cp) .*)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in TUTORIALS[name]:
        pytest.importorskip(module, reason=f"the tutorial needs {module}")
    text = page(name)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "samples" / "digits", tmp_path / "samples" / "digits")
    for file, script in re.findall(r"^`(\w+\.py)`:\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tmp_path / file).write_text(script)
    assert commands(text)
    for command in commands(text):
        words = shlex.split(command)
        if words[0] == "tinyml":
            assert main(words[1:]) == 0, command
        else:
            words[0] = sys.executable if words[0] == "python" else words[0]
            subprocess.run(words, check=True)
    if "evaluate" in text:
        accuracy = re.search(r"^accuracy ([\d.]+) %", capsys.readouterr().out, re.MULTILINE)
        assert accuracy
        assert float(accuracy[1]) > 85


def test_the_c_of_the_first_tutorial_compiles(tmp_path: Path) -> None:
    """As written: the file that the page shows, and its last command."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    text = page("first_model")
    (code,) = re.findall(r"^```c\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "digit_of.c").write_text(code)
    model = str(ROOT / "samples" / "digits" / "model.onnx")
    out = str(tmp_path / "generated")
    assert main(["compile", model, "--name", "digits", "--target", "cortex-m4", "-o", out]) == 0
    (command,) = re.findall(r"^    (arm-none-eabi-gcc .*)$", text, re.MULTILINE)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "tinyml").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tinyml "$@"\n')
    (tools / "tinyml").chmod(0o755)
    places = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "plugin")}
    with_warnings = f"{command} {' '.join(WARNINGS)}"
    subprocess.run(["bash", "-c", with_warnings], cwd=tmp_path, env={**os.environ, **places}, check=True)
    assert {"digit_of.o", "digits.o", "conv_pairs_s8.o"} <= {path.name for path in tmp_path.glob("*.o")}


def test_every_tutorial_is_tested() -> None:
    assert {path.stem for path in (ROOT / "docs").glob("tutorial_*.md")} == {
        f"tutorial_{n}" for n in TUTORIALS
    }
