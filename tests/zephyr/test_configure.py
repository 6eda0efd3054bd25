# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What CMake decides and warns of; nothing is compiled."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.zephyr.building import ROOT, copy_of_digits, options_of, run
from tools import workspace

PATCHES = ROOT / "boards" / "upstream"
HOST = "native_sim/native/64"


def configure(app: Path, board: str, *cmake: str) -> str:
    """`west build --cmake-only`; what it printed."""
    words: list[str | Path] = [
        "west",
        "build",
        "--cmake-only",
        "-p",
        "always",
        "-b",
        board,
        "-d",
        app / "build",
        app,
    ]
    return run([*words, "--", *cmake], app)


def kernel_of(app: Path) -> str:
    """One of the sources of the runtime that the model needs; no others are compiled."""
    return (app / "build" / "tinyml" / "digits" / "digits.kernels").read_text().split()[0]


def test_models_in_cmake_that_are_optimised_for_size_without_an_fpu(tmp_path: Path) -> None:
    """Two models, no manifest, kernels of one library; the user turns the FPU off.

    test_memories.py has an image with the FPU, test_build.py models that are optimised as usual.
    """
    app = copy_of_digits(tmp_path / "app")
    (app / "tinyml.yaml").unlink()
    with (app / "CMakeLists.txt").open("a") as lists:
        lists.write("zephyr_tinyml_model(digits model.onnx OPTIMIZE size IO int8)\n")
        lists.write("zephyr_tinyml_model(second model.onnx KERNELS portable OPTIMIZE size IO int8)\n")
    image = ["CONFIG_SPEED_OPTIMIZATIONS=y", "CONFIG_FPU=n", "CONFIG_TINYML_KERNELS_PORTABLE=y"]
    said = configure(app, "qemu_cortex_m4", *(f"-D{option}" for option in image))
    assert "TinyML: " not in "".join(line for line in said.splitlines() if "Warning" in line)
    build = app / "build"
    assert "CONFIG_FPU=y" not in (build / "zephyr" / ".config").read_text().splitlines()
    assert options_of(build, "/digits/digits.c") == ["-O2", "-Os"]
    assert options_of(build, kernel_of(app)) == ["-O2", "-Os"], "no other model needs them fast"
    told = run(["ninja", "-C", build, "-t", "commands", "tinyml/digits/digits.c"], app)
    assert {"--no-fpu", "--optimize=size", "--io=int8"} <= set(told.split()), "of float layers, it warns"
    for name in ("digits", "second"):
        summary = json.loads((build / "tinyml" / name / f"{name}.json").read_text())
        assert summary["sources"]["cmsis-nn"] == []
    rules = (build / "build.ninja").read_text()
    assert "second/second.c.obj" in rules
    assert "libtinyml_cmsis_nn.a" not in rules


def test_an_error_in_a_first_build_is_mended_without_pristine_and_the_option_goes(tmp_path: Path) -> None:
    """CMake leaves no build.ninja, and west runs ninja alone: a file of ours runs CMake again."""
    app = copy_of_digits(tmp_path / "app")
    build, manifest = app / "build", app / "tinyml.yaml"
    right = manifest.read_text()
    manifest.write_text(right.replace("file:", "fiel:"))
    words: list[str | Path] = ["west", "build", "-b", HOST, "-d", build, app, "-t", "build.ninja"]
    assert "did you mean 'file'?" in run(words, app, check=False)
    assert "did you mean 'file'?" in run(words, app, check=False), "ninja has run CMake, which fails again"
    manifest.write_text(right)
    run(words, app)
    assert "digits/digits.c" in (build / "build.ninja").read_text()

    # The same folder, without the option.
    words = ["west", "build", "--cmake-only", "-d", build, app, "--", "-DCONFIG_TINYML=n"]
    ignored = " ".join(run(words, app).split())
    assert "tinyml.yaml is ignored, because CONFIG_TINYML is off." in ignored
    assert "try: CONFIG_TINYML=y in prj.conf" in ignored
    assert "digits/digits.c" not in (build / "build.ninja").read_text()


@pytest.mark.deep
def test_the_option_without_a_manifest_is_reported(tmp_path: Path) -> None:
    app = copy_of_digits(tmp_path / "app")
    (app / "tinyml.yaml").unlink()
    empty = " ".join(configure(app, HOST).split())
    assert "CONFIG_TINYML=y, but the application has no model" in empty
    assert "try: west tinyml add MODEL" in empty


@pytest.mark.parametrize("patch", sorted(path.name for path in PATCHES.glob("*.patch")))
def test_patches_apply_to_zephyr(patch: str) -> None:
    tree = workspace.location() / "zephyr"
    check = ["git", "-C", str(tree), "apply", "--check", str(PATCHES / patch)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.deep  # test_wheel.py builds for such a board
@pytest.mark.parametrize(
    "board,target",
    [
        ("mps2/an521/cpu0/ns", "cortex-m33-nodsp"),
        ("mps3/corstone310/fvp", "cortex-m85"),
    ],
)
def test_the_target_follows_what_kconfig_says_of_the_core(board: str, target: str, tmp_path: Path) -> None:
    """The non-secure image needs Trusted Firmware-M to be built, but not for this."""
    app = copy_of_digits(tmp_path / "app")
    run(["west", "build", "--cmake-only", "-b", board, "-d", app / "build", app], app, check=False)
    assert (app / "build" / "tinyml" / "target.txt").read_text().strip() == target
