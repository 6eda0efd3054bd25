# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml opt`: passes on the text form of a graph, and the messages for mistakes in it."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.host.test_pass_texts import REWRITES, Rewrite
from tinyml.passes import PASSES
from tinyml.verbs.cli import main

MODEL = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
GRAPH = """\
graph g
  # two transposes that cancel
  input x: float32[1x2x3]
  a: float32[1x3x2] = Transpose(x; perm=0x2x1)
  b: float32[1x3x2] = Unary(a; function=exp, parameters=)
  y: float32[1x2x3] = Transpose(b; perm=0x2x1)
  output y
"""
CANCELLED = """\
graph g
  input x: float32[1x2x3]
  y: float32[1x2x3] = Unary(x; function=exp, parameters=)
  output y
"""


def opt(tmp_path: Path, text: str, *words: str) -> int:
    file = tmp_path / "graph.txt"
    file.write_text(text, encoding="utf-8")
    return main(["opt", str(file), *words])


def test_runs_the_passes_in_the_given_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt(tmp_path, GRAPH, "-p", "cancel_transposes,remove_no_ops", "-p", "remove_dead_code") == 0
    assert capsys.readouterr().out == CANCELLED


def test_without_passes_the_graph_is_checked_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt(tmp_path, GRAPH) == 0
    assert capsys.readouterr().out == GRAPH.replace("  # two transposes that cancel\n", "")


def test_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(GRAPH))
    assert main(["opt", "-", "-p", "cancel_transposes"]) == 0
    assert capsys.readouterr().out == CANCELLED


def test_reads_a_model_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", str(MODEL), "-p", ",".join(step.__name__ for step in PASSES)]) == 0
    out = capsys.readouterr().out
    assert "Conv(" in out
    assert "Dequantize(const" not in out


@pytest.mark.parametrize("case", REWRITES[::20], ids=lambda case: f"{case.step.__name__}: {case.name}")
def test_prints_what_the_pass_tests_expect(
    case: Rewrite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt(tmp_path, case.before, "-p", case.step.__name__) == 0
    assert capsys.readouterr().out == case.after


def test_list_has_every_pass_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", "--list"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in listed] == list(dict.fromkeys(step.__name__ for step in PASSES))
    assert all(summary.endswith(".") for _, summary in listed)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("graph g\n", "", "no line `graph NAME`"),
        ("  output y\n", "  output y\ngraph h\n", "line 8: a second graph begins here"),
        ("Unary(", "Unnary(", "line 5: this line is not a node"),
        ("perm=0x2x1", "order=0x2x1", "line 4: Transpose has no attribute 'order'"),
        ("float32[1x2x3]\n", "float33[1x2x3]\n", "line 3: 'float33' is not a valid DType"),
        ("float32[1x2x3]\n", "float32[axb]\n", "line 3: invalid literal"),
        ("Unary(a;", "Unary(z;", "node 'b' uses 'z', which does not exist"),
        ("output y", "output z", "'z' is an input or output but does not exist"),
        ("a: float32[1x3x2]", "a: float32[1x3x3]", r"'a' has shape \(1, 3, 3\)"),
        ("perm=0x2x1)\n  b", "perm=0x2x7)\n  b", "is not valid"),
        ("perm=0x2x1)\n  b", "perm=0x2)\n  b", "is not valid"),
    ],
)
def test_mistakes_in_the_text_are_messages(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in GRAPH
    assert opt(tmp_path, GRAPH.replace(old, new, 1)) == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert re.search(words, " ".join(err.split())), err


@pytest.mark.parametrize(
    "words, message",
    [
        (["-p", "cancel_transpose"], "no pass 'cancel_transpose'; did you mean cancel_transposes?"),
        (["-p", "nonsense"], "one of: remove_dead_code, join_casts"),
    ],
)
def test_unknown_passes_are_named(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt(tmp_path, GRAPH, *words) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for file, message in (("absent.txt", "No such file"), ("bytes.txt", "is not a text file")):
        assert main(["opt", str(tmp_path / file)]) == 1
        assert message in " ".join(capsys.readouterr().err.split())
    assert main(["opt"]) == 1
    assert "no graph is given" in capsys.readouterr().err
