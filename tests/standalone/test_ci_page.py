# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/ci.md: its pipelines are YAML, and their commands run as written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_digits

from tinyml.verbs.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
PIPELINES = [
    yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
]


def commands(node: object) -> list[str]:
    """The `tinyml` lines of a pipeline, in their order."""
    if isinstance(node, str):
        return [line.strip() for line in node.splitlines() if line.strip().startswith("tinyml ")]
    if isinstance(node, dict):
        node = list(node.values())
    return [line for part in node for line in commands(part)] if isinstance(node, list) else []


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page speaks of."""
    for folder in ("models", "test"):
        (tmp_path / folder).mkdir()
    (tmp_path / "models" / "kws.onnx").write_bytes((ROOT / "samples" / "digits" / "model.onnx").read_bytes())
    digits = load_digits()
    images = (digits.images[:50, np.newaxis] / 16).astype(np.float32)
    np.savez(tmp_path / "test" / "kws.npz", image=images, labels=digits.target[:50])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("pipeline", PIPELINES, ids=["github", "gitlab"])
def test_pipelines(pipeline: object, project: Path) -> None:
    (baseline,) = re.findall(r"^    (tinyml .*)$", PAGE, re.MULTILINE)
    lines = [baseline, *commands(pipeline)]
    assert [line.split()[1] for line in lines[1:]] == ["verify", "evaluate", "report"]
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
    assert (project / "comment.md").is_file() or (project / "report.html").is_file()
