# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`make generated`: the table of commands, what it lists, and what it reports."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from onnx import ModelProto

from tests.conformance.cases import NodeCase
from tools import conformance, generated
from tools.environment import ROOT
from tools.generated import COMMANDS, Command


def test_the_table_of_the_guide_is_current() -> None:
    guide = generated.GUIDE.read_text(encoding="utf-8")
    assert generated.table() in guide, "run `make generated`"
    assert generated.with_table(guide) == guide


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_commands_and_their_files_exist(command: Command) -> None:
    first, *rest = shlex.split(command.words)
    assert find_spec(rest[0]) if first == "-m" else (ROOT / first).is_file()
    for name in command.writes:
        assert (ROOT / name).exists(), name


def test_every_page_that_names_its_command_is_listed() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "notebooks" not in path.parts]
    listed = {
        (name, command.words.split()[1])
        for command in COMMANDS
        if command.words.startswith("-m")
        for name in command.writes
    }
    found = 0
    for page in pages:
        match = re.search(r"(?:Written|Generated) by `python -m ([\w.]+)", page.read_text(encoding="utf-8"))
        if match:
            found += 1
            assert (page.relative_to(ROOT).as_posix(), match[1]) in listed
    assert found >= 8


def test_cheap_commands_need_nothing_and_all_have_a_purpose() -> None:
    assert sum(command.is_cheap for command in COMMANDS) >= 6
    assert all(command.when and command.writes for command in COMMANDS)


def test_changed_created_and_removed_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for name in ("same", "changed", "removed"):
        (out / name).write_text("before")
    script = tmp_path / "write.py"
    script.write_text(
        "from pathlib import Path\nout = Path('out')\n(out / 'changed').write_text('after')\n"
        "(out / 'created').write_text('new')\n(out / 'removed').unlink(missing_ok=True)\n"
    )
    command = Command("write.py", ("out",), "a test")
    assert [path.name for path in generated.run(command)] == ["changed", "created", "removed"]
    assert generated.run(command) == []


def test_a_conformance_case_is_chosen_by_its_operator() -> None:
    model = ModelProto()
    cases = [
        NodeCase(name, "other", op_type, model, [], [])
        for name, op_type in (("test_max", "Max"), ("test_maxpool", "MaxPool"), ("own_max", "Max (int16)"))
    ]
    assert [case.name for case in conformance.chosen(cases, "max")] == ["test_max", "own_max"]
    assert [case.name for case in conformance.chosen(cases, "", "^test_")] == ["test_max", "test_maxpool"]
    assert conformance.chosen(cases, "Min") == []


def test_an_operator_without_cases_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ModelProto()
    only = [NodeCase("test_softmax", "other", "Softmax", model, [], [])]
    monkeypatch.setattr(conformance, "collect", lambda: only)
    monkeypatch.setattr(conformance, "own_cases", list)
    monkeypatch.setattr("sys.argv", ["conformance", "Softmx"])
    assert conformance.main() == 2
    assert "no case matches 'Softmx'; did you mean Softmax?" in capsys.readouterr().err
