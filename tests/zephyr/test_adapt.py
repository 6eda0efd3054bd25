# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model that learns and is watched in Zephyr: over the host service, and across a restart.

Twister runs the rest.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.adapting import GESTURE, examples
from tests.zephyr.building import ROOT, TWISTER_SECONDS, run

pytestmark = pytest.mark.timeout(2 * TWISTER_SECONDS)

SAVED_SECONDS = 4
"""The program saves its counters every second of its own clock, which cannot be asked for."""
NATIVE = "native_sim/native/64"
MAIN = """
#include <gesture.h>
#include <zephyr/settings/settings.h>

int main(void)
{
	return settings_load(); /* the counters; what was learnt is there already */
}
"""
OPTIONS = """
CONFIG_FLASH=y
CONFIG_FLASH_MAP=y
CONFIG_NVS=y
CONFIG_SERIAL=y
CONFIG_SETTINGS=y
CONFIG_SETTINGS_NVS=y
CONFIG_TINYML=y
CONFIG_TINYML_ADAPT=y
CONFIG_TINYML_ADAPT_SETTINGS=y
CONFIG_TINYML_HOST=y
CONFIG_TINYML_HOST_STACK_SIZE=8192
CONFIG_TINYML_WATCH=y
CONFIG_TINYML_WATCH_PERIOD=1
CONFIG_TINYML_WATCH_RESET=n
CONFIG_TINYML_WATCH_SETTINGS=y
"""


@contextmanager
def started(image: Path, flash: Path) -> Iterator[str]:
    """The terminal of an image that runs on this computer."""
    command = [str(image), f"-flash={flash}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"pseudotty: (\S+)", line):
                    yield found[1]
                    break
            else:
                raise AssertionError("no terminal")
        finally:
            process.kill()


def test_a_computer_teaches_it_and_a_restart_keeps_it(tmp_path: Path) -> None:
    app = tmp_path / "app"
    (app / "src").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "zephyr" / "adapt" / "CMakeLists.txt", app)
    (app / "src" / "main.c").write_text(MAIN)
    (app / "prj.conf").write_text(OPTIONS)
    shutil.copy(GESTURE, app / "gesture.onnx")
    (app / "tinyml.yaml").write_text(
        "models:\n  - {name: gesture, file: gesture.onnx, adapt: last, watch: true}\n"
    )
    run(["west", "build", "-b", NATIVE, "-d", tmp_path / "build", app], tmp_path)
    image = tmp_path / "build" / "zephyr" / "zephyr.exe"
    compiled = tinyml.compile(GESTURE, target="host", adapt="last", name="gesture")
    x, y = examples(compiled, 6, 3)
    expected = compiled.adapt(x, y)
    with started(image, tmp_path / "flash.bin") as port, tinyml.connect(port) as device:
        device.learn(x, y)
        assert device.adapter().learnt == expected.learnt
        seen = device.watch()
        assert seen.runs == len(x)
        time.sleep(SAVED_SECONDS)
    with started(image, tmp_path / "flash.bin") as port, tinyml.connect(port) as device:
        assert device.watch().raw == seen.raw
        assert device.adapter().learnt == expected.learnt
        ran = device.run(None, x)
        assert np.array_equal(ran.outputs["scores"], expected.run(x)["scores"])
        device.adapter().factory()
    with started(image, tmp_path / "flash.bin") as port, tinyml.connect(port) as device:
        assert device.adapter().count == 0
