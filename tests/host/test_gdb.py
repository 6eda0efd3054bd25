# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml gdb`: a debugger stops at a layer and prints tensors by name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tinyml.projects.editor import editor_files
from tinyml.setup.installation import gdb_commands
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
RUNTIME = ROOT / "plugin" / "tinyml" / "runtime"
PROGRAM = """
#include <digits.h>

int main(void)
{
	for (int i = 0; i < DIGITS_INPUT_ELEMENTS; i++) {
		digits_input()[i] = (float)i / 64.0f;
	}
	return digits_run();
}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a west build, with a program for this computer."""
    folder = tmp_path_factory.mktemp("build")
    generated = folder / "tinyml" / "digits"
    words = ["compile", str(DIGITS), "--name", "digits", "--target", "host", "--report"]
    assert main([*words, "-o", str(generated)]) == 0
    needed = json.loads((generated / "digits.json").read_text())["sources"]["runtime"]
    (folder / "main.c").write_text(PROGRAM)
    (folder / "zephyr").mkdir()
    sources = [folder / "main.c", generated / "digits.c", *(RUNTIME / name for name in needed)]
    flags = [
        "-g",
        "-O1",
        f"-I{generated}",
        f"-I{RUNTIME / 'include'}",
        "-o",
        str(folder / "zephyr" / "zephyr.elf"),
    ]
    subprocess.run(["gcc", *flags, *sources, "-lm"], check=True)
    return folder


def debugged(build: Path, *commands: str) -> str:
    """What GDB prints; skipped where it cannot run a program."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    words = [gdb, "-q", "-batch", str(build / "zephyr" / "zephyr.elf"), "-x", str(gdb_commands())]
    words += [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    said = done.stdout + done.stderr
    if re.search("ptrace|personality|Python scripting is not supported", said):
        pytest.skip("gdb cannot run programs here")
    return said


def test_tensors_by_name(build: Path) -> None:
    """The input before the first layer, and what a layer has computed before the next one."""
    said = debugged(
        build,
        *("tinyml layers", "tinyml break 0", "run", "tinyml tensor image", "tinyml break digits conv2"),
        *("continue", "tinyml tensor conv1/Transpose/q", "tinyml arena 3"),
    )
    assert re.search(r"digits +3  conv 1x8x8x16  conv2", said)
    rows = re.findall(r"^ +\d+  ([-\d. e]+)$", said.partition("image: 1x1x8x8 float32")[2], re.MULTILINE)[:8]
    found = np.array([float(word) for row in rows for word in row.split()])
    np.testing.assert_allclose(found, np.arange(64) / 64, rtol=1e-5)
    quantised = said.partition("conv1/Transpose/q: 1x8x8x1 int8")[2]
    first = re.search(r"^ +0  (.*) = (.*)$", quantised, re.MULTILINE)
    assert first
    assert float(first[2].split()[-1]) == pytest.approx(7 / 64, abs=0.005), "of eight in a row, dequantised"
    assert re.search(r"layers 3 to 4  relu2", said.partition("digits: ")[2])


@pytest.mark.parametrize(
    "command, message",
    [
        ("tinyml tensor nowhere", "no tensor 'nowhere' in the arena; there are image"),
        ("tinyml break nowhere", "0 layers are called 'nowhere'"),
        ("tinyml break 1", "shares memory; stop before the next one"),
        ("tinyml fly", "tinyml has no command 'fly'"),
    ],
)
def test_mistakes_in_the_debugger(command: str, message: str, build: Path) -> None:
    assert message in debugged(build, command)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gdb", "--script"]) == 0
    assert Path(capsys.readouterr().out.strip()) == gdb_commands()
    assert main(["gdb", "-d", str(tmp_path)]) == 1
    assert "has no zephyr/zephyr.elf" in capsys.readouterr().err


def test_files_of_the_editor() -> None:
    files = editor_files("kws", "nrf52840dk/nrf52840")
    tasks = json.loads(files[".vscode/tasks.json"])["tasks"]
    assert "west build -b nrf52840dk/nrf52840 ." in {task["command"] for task in tasks}
    (launch,) = json.loads(files[".vscode/launch.json"])["configurations"]
    assert launch["preLaunchTask"] in {task["label"] for task in tasks}
    assert "source ${workspaceFolder}/build/tinyml/gdb.py" in {one["text"] for one in launch["setupCommands"]}


TASK = {
    "type": "object",
    "required": ["label", "type", "command"],
    "properties": {
        "label": {"type": "string", "minLength": 1},
        "type": {"const": "shell"},
        "command": {"type": "string", "minLength": 1},
        "isBackground": {"type": "boolean"},
        "group": {
            "required": ["kind", "isDefault"],
            "properties": {"kind": {"enum": ["build", "test"]}, "isDefault": {"type": "boolean"}},
        },
        "problemMatcher": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "$gcc"},  # of the C/C++ extension, which extensions.json recommends
                    {
                        "required": ["owner", "pattern", "background"],
                        "properties": {
                            "pattern": {"required": ["regexp"]},
                            "background": {"required": ["activeOnStart", "beginsPattern", "endsPattern"]},
                        },
                    },
                ]
            },
        },
    },
    "additionalProperties": False,
}
"""What VS Code requires of a task (tasks.json version 2.0.0), as far as these tasks use it."""


def test_tasks_are_those_that_vs_code_accepts() -> None:
    files = editor_files("kws", "")
    document = json.loads(files[".vscode/tasks.json"])
    assert document["version"] == "2.0.0"
    labels = [task["label"] for task in document["tasks"]]
    assert len(set(labels)) == len(labels)
    for task in document["tasks"]:
        assert not list(jsonschema.Draft7Validator(TASK).iter_errors(task)), task
        assert task.get("isBackground", False) == any("background" in m for m in task["problemMatcher"])
    kinds = [task["group"]["kind"] for task in document["tasks"] if "group" in task]
    assert kinds == ["build", "test"], "one default task of each kind"
    recommended = json.loads(files[".vscode/extensions.json"])["recommendations"]
    (launch,) = json.loads(files[".vscode/launch.json"])["configurations"]
    assert launch["type"] == "cppdbg"
    assert {"ms-vscode.cpptools", "redhat.vscode-yaml"} <= set(recommended), "for cppdbg, $gcc and the schema"
    (schema,) = json.loads(files[".vscode/settings.json"])["yaml.schemas"]
    assert schema in files
