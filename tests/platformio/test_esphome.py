# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A whole firmware of ESPHome's for its platform ``host``, with a wake word, built by PlatformIO."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.platformio.conftest import PLATFORMS, Project
from tests.support.esphome import PARTS, esphome
from tinyml.verbs.cli import main

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "wake_word"
CONFIG = f"""
esphome: {{name: listener}}
host:
logger: {{level: DEBUG}}
external_components:
  - source: {{type: local, path: components}}
  - source: {{type: local, path: {PARTS}}}
microphone:
  - {{platform: replay_microphone, id: mic, file: {SAMPLE / "replay.wav"}}}
tinyml_wake_word:
  microphone: mic
  probability_cutoff: 80%
  sliding_window_size: 4
  on_wake_word_detected:
    - logger.log: {{format: "trigger: %s", args: [wake_word.c_str()]}}
tinyml_other:
  id: other
  microphone: mic
  start_on_boot: false
"""
PLATFORM = """
from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
env.Replace(PROGNAME="program", SIZETOOL=None)
Default(env.BuildProgram())
"""
"""As that of the other tests, without warnings that are errors: ESPHome's sources have some."""


@pytest.mark.deep
def test_esphome_hears_the_wake_word(tmp_path: Path, pio_environment: dict[str, str]) -> None:
    """What `esphome compile` writes is built as it is; only the platform comes from here."""
    for name in ("wake_word", "other"):
        words = ["esphome", str(SAMPLE / "model.onnx"), "--name", name, "-o", str(tmp_path / "components")]
        assert main(words) == 0
    (tmp_path / "listener.yaml").write_text(CONFIG)
    done = esphome("compile", "--only-generate", tmp_path / "listener.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    project = Project(tmp_path / ".esphome" / "build" / "listener", pio_environment)
    shutil.copytree(PLATFORMS / "host", project.folder.parent / "platform")
    project.write("../platform/builder/main.py", PLATFORM)
    ini = (project.folder / "platformio.ini").read_text()
    platform = f"platform = symlink://{(project.folder.parent / 'platform').resolve()}"
    project.write("platformio.ini", re.sub("^platform = .*", platform, ini, flags=re.MULTILINE))
    project.build()
    said = subprocess.run(
        [project.program("listener")], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "Heard 'Wake Word' in run 91: 87 %" in said
    assert "trigger: Wake Word" in said
    assert said.rstrip().endswith("the recording has ended")
