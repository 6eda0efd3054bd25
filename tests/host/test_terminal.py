# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The terminal: suggestions for misspelt words, quiet and verbose output, Ctrl-C, completion, JSON."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tinyml.base.errors import INTERRUPTED, ConfigError
from tinyml.cores.machines import MACHINES, find_machine
from tinyml.cores.targets import find_target
from tinyml.datasets import arrays
from tinyml.ir import DType, Tensor
from tinyml.verbs.cli import main
from tinyml.verbs.doctor import Doctor

ROOT = Path(__file__).parents[2]
DIGITS = str(ROOT / "samples" / "digits" / "model.onnx")


@pytest.mark.parametrize(
    "words, usage, message",
    [
        (["verfy", DIGITS], "usage: tinyml [options] VERB", "'verfy' is not a verb; did you mean verify?"),
        (
            ["ops", "--jsn"],
            "usage: tinyml ops [options] [MODEL]",
            "unknown arguments: --jsn; did you mean --json?",
        ),
        (
            ["run", DIGITS, "--on", "cortex-m44"],
            "usage: tinyml run [options] MODEL",
            "did you mean qemu-cortex-m4?",
        ),
        (["run", DIGITS, "--budget"], "usage: tinyml run [options] MODEL", "unknown arguments: --budget\n"),
        (["run", DIGITS, "--zzz"], "usage: tinyml run [options] MODEL", "unknown arguments: --zzz\n"),
        (["run"], "usage: tinyml run [options] MODEL", "required: MODEL"),
    ],
)
def test_mistakes_are_short(
    words: list[str], usage: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.splitlines()[0] == usage
    assert message in said
    assert said.splitlines()[-1].startswith("  try: tinyml ")
    assert len(said.splitlines()) == 3


@pytest.mark.parametrize("option,value", [("--range", "-1:1"), ("--mean", "-0.5,-0.5"), ("--mean", "-.5")])
def test_values_may_begin_with_a_minus(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quantize", DIGITS, "-o", "out.onnx", "--calibration", "missing.npz", option, value]
    assert main(words) == 1
    assert "there is no calibration data missing.npz" in capsys.readouterr().err


def test_targets_and_machines_are_suggested() -> None:
    with pytest.raises(ConfigError, match=r"unknown target 'cortex_m4'; did you mean cortex-m4\?"):
        find_target("cortex_m4")
    with pytest.raises(
        ConfigError, match=r"unknown machine 'qemu-cortex-m4f'; did you mean qemu-cortex-m4\?"
    ):
        find_machine("qemu-cortex-m4f")


def test_quiet_and_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-q", "run", DIGITS]) == 0
    assert main(["report", DIGITS, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["run", DIGITS, "--verbose"]) == 0
    said = capsys.readouterr()
    assert "logits" in said.out
    assert "fuse_activation: " in said.err
    assert "bytes of arena in" in said.err
    assert " -c " in said.err or " -o " in said.err  # objects may come from the cache; the link never does


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(self: Doctor, args: argparse.Namespace, console: Console) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Doctor, "run", interrupted)
    assert main(["doctor"]) == INTERRUPTED
    assert capsys.readouterr().err.strip() == "interrupted"


def tinyml(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin"), **more}
    command = [sys.executable, "-m", "tinyml", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["ops"], ["ops", "--json"]])
def test_a_reader_that_leaves(words: list[str]) -> None:
    """`tinyml ops | head -1` is no error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin")}
    command = [sys.executable, "-m", "tinyml", *words]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nobody_reads:
        done = subprocess.run(
            command, env=environment, stdout=nobody_reads, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell, words", [("bash", "complete "), ("zsh", "compdef"), ("fish", "complete ")])
def test_completion_scripts(shell: str, words: str) -> None:
    pytest.importorskip("argcomplete")
    done = tinyml("completion", shell)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert "tinyml" in done.stdout


@pytest.mark.parametrize(
    "line, expected",
    [
        ("tinyml veri", {"verify"}),
        ("tinyml run --on qemu-c", {name for name in MACHINES if "cortex" in name}),
    ],
)
def test_completion(line: str, expected: set[str], tmp_path: Path) -> None:
    """As the shell calls the program while the user presses the tabulator key."""
    pytest.importorskip("argcomplete")
    answer = tmp_path / "answer"
    done = tinyml(
        _ARGCOMPLETE="1",
        _ARGCOMPLETE_STDOUT_FILENAME=str(answer),
        _ARGCOMPLETE_IFS="\n",
        COMP_LINE=line,
        COMP_POINT=str(len(line)),
    )
    assert done.returncode == 0, done.stderr
    assert {word.strip() for word in answer.read_text().split("\n")} == expected


def test_json_of_operators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--json"]) == 0
    operators = {entry["operator"]: entry for entry in json.loads(capsys.readouterr().out)["operators"]}
    assert "CONV_2D" in operators["conv/conv"]["tflite"]
    assert "Conv" in operators["conv/conv"]["onnx"]
    assert "portable" in operators["conv/conv"]["kernels"]
    assert main(["ops", DIGITS, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["problem"] is None
    assert {"Conv", "MaxPool", "Dense"} <= set(answer["layers"])


def test_json_of_the_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["can"]["compile models"] is True
    assert {"for", "part", "found", "optional"} == set(answer["parts"][0])


def test_short_outputs_are_whole_and_scores_are_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", DIGITS]) == 0
    said = capsys.readouterr().out
    assert "..." not in said
    assert "largest" in said


def test_ranking() -> None:
    tensor = Tensor("y", (1, 4), DType.FLOAT32)
    scores = np.array([[0.1, 3, -1, 2]], np.float32)
    assert arrays.top_classes(scores, tensor, ()) == "1 (3), 3 (2), 0 (0.1)"
    assert arrays.top_classes(scores, tensor, ("a", "b", "c", "d"), 1) == "b (3)"
    assert arrays.top_classes(scores.reshape(2, 2), tensor, ()) == ""


def test_kernels_at_a_hundred_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["report", DIGITS, "--target", "cortex-m4"]) == 0
    said = capsys.readouterr().out
    assert "tinyml_conv_pairs_s8" in said
    assert "tinyml_dense_pairs_s8" in said
    assert "…" not in said
