# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tutorials of docs/: every command and every script as written, where the framework is installed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinyml.harness.program_build import RUNTIME_INCLUDE, WARNINGS
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
    (code,) = re.findall(r"^```c\n(.*?)^```", page("first_model"), re.MULTILINE | re.DOTALL)
    model = str(ROOT / "samples" / "digits" / "model.onnx")
    assert main(["compile", model, "--name", "digits", "--target", "host", "-o", str(tmp_path)]) == 0
    declaration = "int digit_of(const float *image);\n"
    (tmp_path / "app.c").write_text(code.replace("\nint ", f"#include <string.h>\n\n{declaration}\nint ", 1))
    include = [f"-I{tmp_path}", f"-I{RUNTIME_INCLUDE}"]
    subprocess.run(["gcc", *WARNINGS, *include, "-fsyntax-only", str(tmp_path / "app.c")], check=True)


def test_every_tutorial_is_tested() -> None:
    assert {path.stem for path in (ROOT / "docs").glob("tutorial_*.md")} == {
        f"tutorial_{n}" for n in TUTORIALS
    }
