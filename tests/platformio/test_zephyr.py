# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``framework = zephyr``, with PlatformIO's own package that builds Zephyr.

The package is expected where PlatformIO installs it; ``TINYML_PIO_ZEPHYR`` points to another folder. Further
packages that it requires are replaced by the system's tools.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.platformio.conftest import REPOSITORY, MakeProject, Project, describe_package
from tests.platformio.digits import GOLDEN, QEMU, SAMPLE, built, require
from tinyml.setup.workspace import find_cmsis_nn

INPUTS = REPOSITORY / "samples" / "digits" / "src"
IMAGES = 40
CMAKE = """\
cmake_minimum_required(VERSION 3.20)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(digits)
target_sources(app PRIVATE ../src/main.c)
"""


@pytest.fixture(scope="session")
def zephyr_package(pio_environment: dict[str, str]) -> Iterator[Path]:
    """Where PlatformIO's Zephyr is; the tools it requires are among the packages of the tests."""
    named = os.environ.get("TINYML_PIO_ZEPHYR")
    found = Path(named) if named else Path.home() / ".platformio" / "packages" / "framework-zephyr"
    if not (found / "scripts" / "platformio" / "platformio-build.py").is_file():
        pytest.skip("no framework-zephyr of PlatformIO's here (TINYML_PIO_ZEPHYR names its folder)")
    tools = {name: shutil.which(name) for name in ("arm-none-eabi-gcc", "cmake", "dtc", "ninja", "gperf")}
    require(*tools)
    packages = Path(pio_environment["PLATFORMIO_CORE_DIR"]) / "packages"
    for name, path in tools.items():
        program = Path(str(path))
        package = "toolchain-gccarmnoneeabi" if name == "arm-none-eabi-gcc" else f"tool-{name}"
        folder = packages / package
        folder.mkdir()
        (folder / "bin").symlink_to(program.parent)
        (folder / "lib").symlink_to(program.parent.parent / "lib")
        (folder / name).symlink_to(program)
        describe_package(folder, package, "1.0.0")
    state = found / "_pio" / "state.json"  # which modules it has; a build with fewer would forget the others
    before = state.read_bytes() if state.is_file() else None
    yield found.resolve()
    if before is not None:
        state.write_bytes(before)


def few_modules(package: Path) -> dict[str, Any]:
    """The package's manifest with as little as the board needs: nothing to fetch, and less to compile."""
    manifest = yaml.safe_load((package / "west.yml").read_text())["manifest"]
    projects = [each for each in manifest["projects"] if each["name"] in ("cmsis", "cmsis_6")]
    return {"manifest": {**manifest, "projects": projects}}


def environment(package: Path) -> str:
    """The [env:m3] of platformio.ini."""
    packages = f"platform_packages = framework-zephyr@symlink://{package}"
    return f"{QEMU}framework = zephyr\n{packages}\nbuild_flags = '-I{INPUTS}'\n"


def golden(project: Project, package: Path) -> Project:
    """A Zephyr application that compares the model's outputs on 40 images with the host's, byte for byte."""
    shutil.copytree(SAMPLE / "models", project.folder / "models")
    project.write("src/main.c", (GOLDEN / "test" / "test_digits" / "main.c").read_text())
    project.write("zephyr/CMakeLists.txt", CMAKE)
    project.write("zephyr/prj.conf", "CONFIG_MAIN_STACK_SIZE=4096\n")
    project.write("west.yml", yaml.safe_dump(few_modules(package)))
    return project


def passed_in_qemu(image: Path) -> int:
    """How many images came out right; Zephyr does not end, so QEMU is stopped after the last."""
    command = ["timeout", "60", "qemu-system-arm", "-M", "mps2-an385", "-nographic", "-monitor", "none"]
    passed = 0
    with subprocess.Popen(
        [*command, "-serial", "stdio", "-kernel", image], stdout=subprocess.PIPE, text=True
    ) as qemu:
        assert qemu.stdout
        for line in qemu.stdout:
            passed += line.strip().endswith("PASS")
            if line.startswith(f"image {IMAGES - 1}:"):
                break
        qemu.terminate()
    return passed


def test_as_a_library(make_project: MakeProject, zephyr_package: Path) -> None:
    project = golden(make_project(environment(zephyr_package)), zephyr_package)
    project.build()
    image = project.folder / ".pio/build/m3/firmware.elf"
    assert passed_in_qemu(image) == IMAGES
    assert {"digits.onnx", "digits.o"}.isdisjoint(built(project.build()))

    model = project.folder / "models" / "digits.onnx"
    model.write_bytes(model.read_bytes() + b"\x32\x03new")  # ModelProto.doc_string
    again = built(project.build())
    assert {"digits.onnx", "digits.o", "firmware.elf"} <= set(again)
    assert "main.o" not in again


def test_as_a_pre_script_with_cmsis_nn(make_project: MakeProject, zephyr_package: Path) -> None:
    cmsis_nn = find_cmsis_nn()
    if cmsis_nn is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    project = golden(make_project(environment(zephyr_package)), zephyr_package)
    hook = REPOSITORY / "plugin" / "platformio_hook.py"
    project.write(
        "platformio.ini",
        f"[env]\nextra_scripts = pre:{hook}\n{environment(zephyr_package)}"
        f"custom_tinyml_cmsis_nn = {cmsis_nn}\ncustom_tinyml_kernels = cmsis-nn\n",
    )
    project.build()
    assert "arm_convolve" in project.generated("digits.c", "m3").read_text()
    assert passed_in_qemu(project.folder / ".pio/build/m3/firmware.elf") == IMAGES
