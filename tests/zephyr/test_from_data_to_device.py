# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/from_data_to_device.md: every command, as written, in a copy of the sample."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.zephyr.building import ROOT, TWISTER_SECONDS, run

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

PAGE = (ROOT / "docs" / "from_data_to_device.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    ((?:west|python|tinyml|build/).*)$", PAGE, re.MULTILINE)


@pytest.mark.deep
def test_commands(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    pytest.importorskip("sklearn", reason="the training script uses threadpoolctl, which comes with it")
    names = ("gesture", "common")
    left_out = shutil.ignore_patterns("build", "recordings", "model*.onnx", "tinyml.yaml", "replay.csv")
    for name in names:
        shutil.copytree(ROOT / "samples" / name, tmp_path / name, ignore=left_out)
    app = tmp_path / "gesture"
    for name in ("model.onnx", "tinyml.yaml", "replay.csv"):  # what the first step builds
        shutil.copy(ROOT / "samples" / "gesture" / name, app)
    said = {command: run(["bash", "-euo", "pipefail", "-c", command], app) for command in COMMANDS}
    assert len((app / "captured.csv").read_text().splitlines()) == 1350
    accuracy = re.search(r"([\d.]+) % of \d+ held-back", said["python train.py"])
    assert accuracy
    assert float(accuracy[1]) > 98
    application = said["build/run/zephyr/zephyr.exe -no-rt -stop_at=30"]
    expected = said["python expected.py"].splitlines()
    assert [line for line in application.splitlines() if line in expected] == expected


def test_the_page_shows_what_the_sample_prints() -> None:
    readme = (ROOT / "samples" / "gesture" / "README.rst").read_text(encoding="utf-8")
    shown = re.search(r"\n\n((?:    (?:gesture: |the sensor |[\d.]+ s: ).*\n)+)", PAGE)
    assert shown
    assert re.sub(r"^    ", "   ", shown[1], flags=re.MULTILINE) in readme
