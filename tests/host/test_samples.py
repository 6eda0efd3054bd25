# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples: what Twister expects of an application is what Python computes, and READMEs show it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(path.parent for path in (ROOT / "samples").glob("*/expected.py"))


def expected(sample: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin")}
    done = subprocess.run(
        [sys.executable, "expected.py", *arguments],
        cwd=sample,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_there_are_samples() -> None:
    assert {"gesture", "sensor_fusion"} <= {sample.name for sample in SAMPLES}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_numbers(sample: Path) -> None:
    pytest.importorskip("sklearn", reason="samples are trained with packages of its")
    check(expected(sample), yaml.safe_load((sample / "sample.yaml").read_text())["common"], sample)


def test_the_float_writer() -> None:
    sample = ROOT / "samples" / "writer"
    tests = yaml.safe_load((sample / "sample.yaml").read_text())["tests"]
    check(expected(sample, "model_float.onnx"), tests["sample.tinyml.writer.float"], sample)


def check(lines: list[str], test: dict[str, Any], sample: Path) -> None:
    """Twister looks for the lines, and the README shows them."""
    config = test["harness_config"]
    exact = [regex for regex in config["regex"] if "\\d" not in regex]
    assert [re.sub(r"\\(.)", r"\1", regex) for regex in exact] == lines
    shown = (sample / "README.rst").read_text()
    assert "\n".join(f"   {line}" for line in lines) in shown
