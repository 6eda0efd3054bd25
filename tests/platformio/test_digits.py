# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The digits model in a PlatformIO project, on the host and on Cortex-M3 in QEMU."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platformio.conftest import REPOSITORY, MakeProject, platform
from tests.platformio.digits import GOLDEN, HOST, QEMU, SAMPLE, answers, require, sample
from tinyml.report.describe import memory_line
from tinyml.setup.workspace import find_cmsis_nn

RISCV = f"[env:rv32]\n{platform('qemu_riscv')}\nboard = virt\n"
ANSWERS = ["this is a 0", "this is a 3", "this is a 4"]


def test_sample_holds_the_digits_model() -> None:
    assert (SAMPLE / "models" / "digits.onnx").read_bytes() == (
        REPOSITORY / "samples/digits/model.onnx"
    ).read_bytes()
    assert sorted(
        path.name for path in SAMPLE.rglob("*.*") if path.is_file() and ".pio" not in path.parts
    ) == [
        "digits.onnx",
        "main.c",
        "platformio.ini",
    ]


def test_on_the_host(make_project: MakeProject) -> None:
    project = sample(make_project(HOST))
    said = project.build()
    summary = json.loads(project.generated("digits.json").read_text())
    assert f"tinyml: {memory_line(summary)}" in said
    assert f"{summary['arena_bytes']:,} bytes of arena in RAM" in said
    objects = {path.stem for path in project.folder.rglob("*.o")}
    assert {Path(name).stem for name in summary["sources"]["runtime"]} <= objects
    assert not objects & {"conv_f32", "lstm_f32", "player"}, "only kernels in use are compiled"
    done = subprocess.run([project.program()], capture_output=True, text=True, check=True)
    assert answers(done.stdout) == ANSWERS

    report = project.build("-t", "tinyml-report")
    assert "digits (for host)" in report
    assert "print_reports" not in report
    assert "bytes of RAM (lower bound" in report
    assert "input    image: 1x1x8x8 float32, 256 bytes" in report
    assert re.search(r"^  conv2 +Conv +tinyml_conv_s8 +73,728 ", report, re.MULTILINE)


def test_in_an_arduino_sketch(make_project: MakeProject) -> None:
    """C++ and Arduino's ways: setup() and loop(), the core's own main(), objects named digits.c.o."""
    project = make_project(f"{QEMU}framework = arduino\n")
    shutil.copytree(SAMPLE / "models", project.folder / "models")
    project.write("src/sketch.cpp", SKETCH)
    assert "digit 0" in project.build("-t", "qemu")
    assert "digits.onnx" not in project.build(), "the second build has nothing to do"


SKETCH = """
#include <Arduino.h>
#include <digits.h>

void setup()
{
    for (int i = 0; i < DIGITS_INPUT_ELEMENTS; i++) {
        const int y = i / 8, x = i % 8, border = (y == 1 || y == 6) + (x == 2 || x == 5);
        digits_input()[i] = border == 1 && x > 1 && x < 6 && y > 0 && y < 7 ? 1.0f : 0.0f;
    }
    digits_run();
}

void loop()
{
    int best = 0;
    for (int i = 1; i < DIGITS_OUTPUT_ELEMENTS; i++) {
        if (digits_output()[i] > digits_output()[best]) {
            best = i;
        }
    }
    printf("digit %d\\n", best);
    exit(0);
}
"""


def test_as_a_pre_script(make_project: MakeProject) -> None:
    """Without the library as a dependency: the script alone adds everything."""
    project = sample(make_project(QEMU))
    hook = REPOSITORY / "plugin" / "platformio_hook.py"
    project.write("platformio.ini", f"[env]\nextra_scripts = pre:{hook}\n{QEMU}")
    assert answers(project.build("-t", "qemu")) == ANSWERS


SEMIHOSTED = ["-nographic", "-monitor", "none", "-serial", "null"]
SEMIHOSTED += ["-semihosting-config", "enable=on,target=native", "-kernel"]
MACHINES = {
    "m3": (QEMU, "cortex-m3", ["qemu-system-arm", "-M", "mps2-an385", *SEMIHOSTED]),
    "rv32": (RISCV, "riscv32", ["qemu-system-riscv32", "-M", "virt", "-bios", "none", *SEMIHOSTED]),
}


def test_golden_vectors(make_project: MakeProject) -> None:
    """``pio test``: 40 cases, each one image whose output must be the host's byte for byte.

    The sample as it is, but for the platform, which is PlatformIO's registry's; and with emulated cores. One
    is no Cortex-M: the same plain C, named after what it runs on.
    """
    tools = ("riscv64-unknown-elf-gcc", "qemu-system-riscv32")
    machines = dict(MACHINES) if all(map(shutil.which, tools)) else {"m3": MACHINES["m3"]}
    project = make_project("", name="samples/platformio_test")
    shutil.copytree(GOLDEN / "test", project.folder / "test")
    ini = (GOLDEN / "platformio.ini").read_text()
    for theirs, ours in {
        "platform = native": platform("host"),
        "symlink://../..": f"symlink://{REPOSITORY}",
        "../digits": str(REPOSITORY / "samples" / "digits"),
    }.items():
        assert theirs in ini
        ini = ini.replace(theirs, ours)
    for environment, (own, _, emulator) in machines.items():
        command = ["timeout", "60", *emulator, f"${{platformio.build_dir}}/{environment}/firmware.elf"]
        lines = "".join(f"    {word}\n" for word in command)
        ini += f"\n{own}test_testing_command =\n{lines}"
    project.write("platformio.ini", ini)
    done = project.pio("test")
    assert done.returncode == 0, done.stdout
    cases = 40 * (1 + len(machines))
    assert f"{cases} test cases: {cases} succeeded" in done.stdout
    for environment, (_, target, _) in machines.items():
        assert f'"target": "{target}"' in project.generated("digits.json", environment).read_text()
    if len(machines) < len(MACHINES):
        require(*tools)  # a part is missing, by its name


@pytest.mark.deep
@pytest.mark.parametrize("machine", MACHINES)
def test_the_sample_in_qemu(make_project: MakeProject, machine: str) -> None:
    """What the sample prints; ``test_golden_vectors`` compares the outputs of its model on the same cores."""
    ini, target, emulator = MACHINES[machine]
    require(emulator[0])
    project = sample(make_project(ini))
    assert answers(project.build("-t", "qemu")) == ANSWERS
    assert f'"target": "{target}"' in project.generated("digits.json", machine).read_text()


# `pio pkg pack` fetches the list of licences from the net to check ours; here it is given.
PACK = """
import sys
from platformio.package.manifest.schema import ManifestSchema
from platformio.package.pack import PackagePacker

ManifestSchema.load_spdx_licenses = staticmethod(lambda: {"licenses": [{"licenseId": "Apache-2.0"}]})
PackagePacker(sys.argv[1]).pack(sys.argv[2])
"""


def test_packed_library_is_complete(make_project: MakeProject, tmp_path: Path) -> None:
    """What PlatformIO packs for its registry compiles models on its own."""
    project = sample(make_project(HOST))
    script = tmp_path / "pack.py"
    script.write_text(PACK)
    subprocess.run([sys.executable, script, REPOSITORY, tmp_path / "library.tar.gz"], check=True)
    project.write("platformio.ini", f"[env]\nlib_deps = file://{tmp_path / 'library.tar.gz'}\n{HOST}")
    project.build()
    done = subprocess.run([project.program()], capture_output=True, text=True, check=True)
    assert answers(done.stdout) == ANSWERS


def test_cmsis_nn_among_the_libraries_is_used(make_project: MakeProject, tmp_path: Path) -> None:
    """As it comes from its repository: no manifest for PlatformIO, and files that must not be built."""
    found = find_cmsis_nn()
    if found is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    library = tmp_path / "CMSIS-NN"
    for part in ("Include", "Source"):
        shutil.copytree(found / part, library / part)
    (library / "Tests").mkdir()
    (library / "Tests" / "test.c").write_text("#error this is not part of the library\n")
    project = sample(make_project(QEMU))
    project.write(
        "platformio.ini",
        "[env]\ncustom_tinyml_kernels = cmsis-nn\n"
        f"lib_deps =\n    symlink://{REPOSITORY}\n    file://{library}\n{QEMU}",
    )
    assert answers(project.build("-t", "qemu")) == ANSWERS
    assert "arm_convolve" in project.generated("digits.c", "m3").read_text()
    objects = {path.stem for path in project.folder.rglob("*.o")}
    assert "cmsis_nn" in objects
    assert not {name for name in objects if name.startswith("arm_")}, "only what the model calls is compiled"
