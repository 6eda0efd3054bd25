# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sample of the player for boards that not every workspace has, so its sample.yaml does not name them."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from tests.zephyr.building import ROOT

TEST = "sample.tinyml.player"


def sample_for(board: str, folder: Path, test: str = TEST) -> Path:
    """A copy of the sample, and of what it takes from its neighbours, whose one test is for a board."""
    for name in ("player", "digits/src", "digits/model.onnx", "model_update/model_v1.onnx"):
        source, copy = ROOT / "samples" / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(source, copy)
    path = folder / "player" / "sample.yaml"
    sample = yaml.safe_load(path.read_text())
    sample["tests"] = {test: {"platform_allow": [board], "integration_platforms": [board]}}
    path.write_text(yaml.safe_dump(sample))
    return folder / "player"
