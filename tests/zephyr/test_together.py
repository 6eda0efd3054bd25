# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One image for this computer: tests in C of models that learn, are fed from an interrupt, and are watched.

A computer also connects to it, teaches a model, reads its counters, and does so again after a restart.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

import tinyml
from tests.support.adapting import GESTURE, examples
from tests.zephyr.applications import TOGETHER
from tests.zephyr.building import ROOT, TWISTER_SECONDS, run, symbols

pytestmark = pytest.mark.timeout(2 * TWISTER_SECONDS)

SAVED_SECONDS = 4
"""The program saves its counters every second of its own clock, which cannot be asked for."""
NATIVE = "native_sim/native/64"
HERE = ROOT / "tests" / "zephyr"
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
    folder = tmp_path_factory.mktemp("together")
    run(["west", "build", "-b", NATIVE, "-d", folder, HERE / "together"], folder)
    return folder / "zephyr" / "zephyr.exe"


@pytest.fixture(scope="module")
def printed(image: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the tests in C print."""
    command = [str(image), f"-flash={tmp_path_factory.mktemp('flash') / 'flash.bin'}", "-no-rt"]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "PROJECT EXECUTION" in line:
                break
        process.kill()
    return lines


@pytest.mark.parametrize("part,count", [*zip(TOGETHER, (6, 2, 5), strict=True)])
def test_in_c(printed: list[str], part: str, count: int) -> None:
    assert "PROJECT EXECUTION SUCCESSFUL" in printed[-1], "".join(printed)
    source = (HERE / part / "src" / "main.c").read_text()
    names = re.findall(r"^ZTEST\((\w+), (\w+)\)$", source, re.MULTILINE)
    said = "".join(printed)
    assert len(names) == count
    assert [f"{suite}.{name}" for suite, name in names if f"- PASS - [{suite}.{name}] " not in said] == []


def models_of(part: str) -> list[dict[str, object]]:
    """Those of an application, with the files as seen from their folder."""
    models: list[dict[str, object]] = yaml.safe_load((HERE / part / "tinyml.yaml").read_text())["models"]
    for model in models:
        for key in ("file", "watch_data"):
            if key in model:
                model[key] = (HERE / part / str(model[key])).resolve()
    return models


def test_the_image_has_the_models_of_its_parts() -> None:
    assert models_of("together") == [model for part in TOGETHER for model in models_of(part)]


def test_each_model_has_an_arena_of_its_own(image: Path) -> None:
    """Beside each other among the variables; test_memories.py has arenas in a region that is chosen."""
    names = symbols(image)
    parts = []
    for model in map(str, (model["name"] for model in models_of("together"))):
        header = (image.parents[1] / "tinyml" / model / f"{model}.h").read_text()
        (size,) = re.findall(r"_ARENA_BYTES (\d+)", header)
        address, _, section = names[f"{model}_arena"]
        assert (section, address % 16) == ("noinit", 0)
        parts.append(range(address, address + int(size)))
    parts.sort(key=lambda part: part.start)
    assert len(parts) == 8
    assert all(one.stop <= other.start for one, other in pairwise(parts))


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
