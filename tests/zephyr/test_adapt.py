# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model that learns and is watched in Zephyr: over the host service, and across a restart.

One image has the tests in C, too.
"""

from __future__ import annotations

import re
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
APP = ROOT / "tests" / "zephyr" / "adapt"
NO_TESTS = "-test=none::none"
"""The image waits for a computer instead of running its tests."""


@contextmanager
def started(image: Path, flash: Path) -> Iterator[str]:
    """The terminal of an image that runs on this computer."""
    command = [str(image), f"-flash={flash}", "-rt", NO_TESTS]
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


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application of the tests in C, with the host service and counters."""
    folder = tmp_path_factory.mktemp("adapt")
    run(["west", "build", "-b", NATIVE, "-d", folder, APP, "--", "-DEXTRA_CONF_FILE=host.conf"], folder)
    return folder / "zephyr" / "zephyr.exe"


def test_what_is_learnt_is_saved(image: Path, tmp_path: Path) -> None:
    """The tests in C, which `make test-deep` also runs with Twister."""
    command = [str(image), f"-flash={tmp_path / 'flash.bin'}", "-no-rt"]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "PROJECT EXECUTION" in line:
                break
        process.kill()
    assert "PROJECT EXECUTION SUCCESSFUL" in lines[-1], "".join(lines)
    names = re.findall(r"^ZTEST\(tinyml_adapt, (\w+)\)$", (APP / "src" / "main.c").read_text(), re.MULTILINE)
    assert {name for name in names if any(f"PASS - {name} " in line for line in lines)} == set(names)
    assert len(names) == 6


def test_a_computer_teaches_it_and_a_restart_keeps_it(image: Path, tmp_path: Path) -> None:
    compiled = tinyml.compile(GESTURE, target="host", adapt="last", name="gesture")
    x, y = examples(compiled, 6, 3)
    expected = compiled.adapt(x, y)
    with started(image, tmp_path / "flash.bin") as port, tinyml.connect(port) as device:
        device.learn(x, y, model="gesture")
        assert device.adapter("gesture").learnt == expected.learnt
        seen = device.watch("gesture")
        assert seen.runs == len(x)
        time.sleep(SAVED_SECONDS)
    with started(image, tmp_path / "flash.bin") as port, tinyml.connect(port) as device:
        assert device.watch("gesture").raw == seen.raw
        assert device.adapter("gesture").learnt == expected.learnt
        ran = device.run("gesture", x)
        assert np.array_equal(ran.outputs["scores"], expected.run(x)["scores"])
        device.adapter("gesture").factory()
    with started(image, tmp_path / "flash.bin") as port, tinyml.connect(port) as device:
        assert device.adapter("gesture").count == 0
