# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A float model in an application that sysbuild builds: the build makes it int8, once.

Our variables reach the image of sysbuild.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_digits

from tests.depth import is_deep
from tests.zephyr.building import DIGITS, Build, copy_of_digits, run, west_build


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The sample with its float model, calibrated on some of its images; the last layers with int16.

    CMake makes and compiles the int8 model. `make test-deep` builds and runs the image.
    """
    app = copy_of_digits(tmp_path_factory.mktemp("quantize") / "app")
    (app / "tinyml.yaml").unlink()
    shutil.copy(DIGITS / "model_float.onnx", app / "model_float.onnx")
    calibrate(app, 100)
    entry = {"name": "digits", "file": "model_float.onnx", "budget": {"ram": "20K"}}
    quantize = {"calibration": "calib.npz", "method": "minmax", "int16": ["dense"]}
    (app / "other.yaml").write_text(yaml.safe_dump({"models": [{**entry, "quantize": quantize}]}))
    settings = ("-DTINYML_MANIFEST=other.yaml", "-DTINYML_TARGET=cortex-m0")
    west_build(app, app / "build", "qemu_cortex_m3", *settings, compiled=is_deep(), sysbuild=True)
    return Build(app, app / "build" / "app")


def calibrate(app: Path, count: int) -> None:
    images = (load_digits().images / 16).astype(np.float32)[:count]
    np.savez(app / "calib.npz", image=images)


def test_the_build_makes_the_model_int8(build: Build) -> None:
    source = build.generated("digits.c")
    assert "int8 calibrated on calib.npz, method minmax, int16 dense" in source
    assert "tinyml_dense_s16" in source
    assert re.search(r"tinyml_(conv|depthwise)\w*_s8\(|arm_convolve", source)
    assert "conv_f32" not in source


def test_variables_reach_the_image_of_sysbuild(build: Build) -> None:
    assert json.loads(build.generated("digits.json"))["target"] == "cortex-m0"
    told = run(["ninja", "-C", build.folder, "-t", "commands", "tinyml/digits/digits.c"], build.app)
    assert "--limit=ram=20480,the budget of model digits" in told


@pytest.mark.deep
def test_the_image_still_recognises_digits(build: Build) -> None:
    found = re.search(r"(\d+) of (\d+) (?:images )?right", build.in_qemu(until="right"))
    assert found
    assert int(found[1]) >= int(found[2]) - 2


def test_new_calibration_data_rebuild_the_model(build: Build) -> None:
    until = "all" if is_deep() else str(build.folder / "tinyml" / "digits" / "digits.c")
    build.again(target=until)
    assert "no work to do" in build.again(target=until)
    before = build.generated("digits_weights.h") + build.generated("digits.c")
    calibrate(build.app, 20)
    said = build.again(target=until)
    assert "compiling model digits" in said
    assert "digits: int8:" in said
    assert build.generated("digits_weights.h") + build.generated("digits.c") != before
    assert "no work to do" in build.again(target=until)
