# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What is rebuilt when, and which errors are reported."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.platformio.conftest import REPOSITORY, MakeProject, Project, lend_bytecode, platform
from tests.platformio.digits import HOST, QEMU, SAMPLE, answers, built, sample

DIGITS = REPOSITORY / "samples" / "digits"


def test_only_what_changed_is_rebuilt(make_project: MakeProject, tmp_path: Path) -> None:
    """No-op, touched, changed model, changed compiler: each step builds no more than it must."""
    library = tmp_path / "library"
    shutil.copytree(REPOSITORY / "plugin", library / "plugin", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "library.json", library)
    lend_bytecode(REPOSITORY / "plugin", library / "plugin")
    project = sample(make_project(HOST)).of_a_copy
    project.write("platformio.ini", f"[env]\nlib_deps = symlink://{library}\n{HOST}")
    model = project.folder / "models" / "digits.onnx"

    first = built(project.build())
    assert {"digits.onnx", "digits.o", "main.o", "program"} <= set(first)
    again = Project(project.folder, {**project.environment, "PYTHONPROFILEIMPORTTIME": "1"}).build()
    assert built(again) == []
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", again, re.MULTILINE))
    assert "tinyml.projects.platformio.project" in imported
    assert not imported & {"tinyml.pipeline", "numpy", "onnx"}, "it takes longer than all else"

    os.utime(model)
    assert built(project.build()) == []

    model.write_bytes(model.read_bytes() + b"\x32\x03new")  # ModelProto.doc_string
    assert built(project.build()) == ["digits.onnx", "digits.o", "program"]

    with (library / "plugin" / "tinyml" / "pipeline.py").open("a") as file:
        file.write("\n# a comment changes the compiler, but not what it writes\n")
    assert built(project.build()) == ["digits.onnx"]
    assert built(project.build()) == []


def test_a_changed_option_or_model_regenerates(make_project: MakeProject) -> None:
    project = sample(make_project(HOST))
    project.write("tinyml.yaml", "models:\n  - {name: digits, file: models/digits.onnx}\n")
    project.build()
    if importlib.util.find_spec("ethosu") is not None:
        project.write(
            "tinyml.yaml", "models:\n  - {name: digits, file: models/digits.onnx, npu: ethos-u55-128}\n"
        )
        said = project.fail()
        assert "through tinyml_ethos_u_run(), which your application provides" in said
        assert "undefined reference to `tinyml_ethos_u_run'" in said
    model = "{name: digits, file: models/digits.onnx, kernels: portable, shapes: {image: 1x1x8x8}}"
    project.write("tinyml.yaml", f"models:\n  - {model}\n")
    assert "digits.onnx" in built(project.build())
    assert built(project.build()) == []
    (project.folder / "tinyml.yaml").unlink()
    a_broken_model_stops_the_build_and_a_good_one_heals_it(project)


def a_broken_model_stops_the_build_and_a_good_one_heals_it(project: Project) -> None:
    """Nothing stale survives a model that is broken, or removed."""
    model = project.folder / "models" / "digits.onnx"
    good = model.read_bytes()
    model.write_bytes(b"this is not a model")
    output = project.fail()
    assert "tinyml: error:" in output
    assert "digits.onnx" in output
    assert not project.generated("digits.c").exists()
    model.write_bytes(good)
    project.build()
    assert project.generated("digits.c").exists()
    model.unlink()
    output = project.fail()
    assert "tinyml: no models found; put .onnx or .tflite files into models/" in output
    assert "digits.h: No such file" in output
    assert not list(project.generated(".").glob("*"))


def test_two_environments_with_different_models(make_project: MakeProject) -> None:
    """Each environment compiles its own models, whatever separators their paths are written with.

    The paths of the project and of a model have spaces.
    """
    ini = (
        f"{HOST}custom_tinyml_models = digits=models\\my digits.onnx\n"
        f"[env:float]\n{platform('host')}\ncustom_tinyml_models =\n    digits=models/model_float.onnx\n"
    )
    project = sample(make_project(ini, name="my project"))
    shutil.move(project.folder / "models" / "digits.onnx", project.folder / "models" / "my digits.onnx")
    shutil.copy(DIGITS / "model_float.onnx", project.folder / "models")
    project.build()
    for environment in ("host", "float"):
        done = subprocess.run([project.program(environment)], capture_output=True, text=True, check=True)
        assert answers(done.stdout)[0] == "this is a 0"
        assert len(answers(done.stdout)) == 3
    sources = [project.generated("digits.c", environment).read_text() for environment in ("host", "float")]
    assert ["_f32" in source for source in sources] == [False, True]
    assert ["_s8" in source for source in sources] == [True, False]


def test_an_input_that_arrives_in_rows(make_project: MakeProject) -> None:
    """Fed row by row, or from memory as a whole: the outputs are the same."""
    project = make_project(f"{HOST}custom_tinyml_io = rows\n")
    shutil.copytree(SAMPLE / "models", project.folder / "models")
    project.write(
        "src/main.c",
        """
        #include <digits.h>
        #include <stdio.h>
        #include <string.h>

        static const float image[DIGITS_ROWS][DIGITS_ROW_ELEMENTS] = {{1}, {2, 3, 5}, {8, 13}, {9}};

        int main(void)
        {
            float fed[DIGITS_OUTPUT_ELEMENTS];

            digits_begin();
            for (int row = 0; row < DIGITS_ROWS; row++) {
                printf("%d ", digits_feed_rows(image[row], 1));
            }
            memcpy(fed, digits_output(), sizeof(fed));
            digits_begin();
            digits_feed_rows(image[1], 2);
            digits_run(image[0]);
            printf("%s\\n", memcmp(fed, digits_output(), sizeof(fed)) == 0 ? "alike" : "different");
            return 0;
        }
        """,
    )
    project.build()
    done = subprocess.run([project.program()], capture_output=True, text=True, check=True)
    assert done.stdout == "7 6 5 4 3 2 1 0 alike\n"


def test_private_libraries_see_the_headers_and_float_models_find_the_maths_library(
    make_project: MakeProject,
) -> None:
    """Few platforms for the host link the maths library of themselves."""
    project = make_project(HOST)
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Softmax", ["t"], ["y"])]
    (project.folder / "models").mkdir()
    onnx.save(
        helper.make_model(helper.make_graph(nodes, "squash", value[:1], value[1:])),
        project.folder / "models" / "squash.onnx",
    )
    project.write("lib/reader/reader.h", "float read_nothing(void);\n")
    project.write(
        "lib/reader/reader.c",
        '#include "reader.h"\n#include <squash.h>\n'
        "float read_nothing(void) { return squash_run() == 0 ? squash_output()[0] : -1.0f; }\n",
    )
    project.write(
        "src/main.c",
        "#include <stdio.h>\n#include <reader.h>\n#include <squash.h>\n"
        'int main(void) { printf("%.2f %d\\n", (double)read_nothing(), SQUASH_OUTPUT_ELEMENTS); }\n',
    )
    project.build()
    said = subprocess.run([project.program()], capture_output=True, text=True, check=True).stdout
    assert said == "0.25 4\n"


@pytest.mark.tenth
@pytest.mark.parametrize(
    "option, message, hint",
    [
        (
            "custom_tinyml_model = models/digits.onnx",
            "unknown option custom_tinyml_model",
            "did you mean custom_tinyml_models?",
        ),
        (
            "custom_tinyml_models = models/kws.onnx",
            "there is no model file models/kws.onnx in project",
            "the project has models/digits.onnx",
        ),
        (
            "custom_tinyml_kernels = fast",
            "unknown kernels 'fast'",
            "one of: auto, cmsis-nn, portable",
        ),
        ("custom_tinyml_arena = 100", "bytes of RAM, custom_tinyml_arena allows 100", "a larger budget"),
        (
            "custom_tinyml_arena = 1000",
            "bytes of RAM, custom_tinyml_arena allows 1,000",
            "try: `custom_tinyml_optimize = ram` (",
        ),
        ("custom_tinyml_arena = lots", "'lots' is not a number of bytes", "24576, 24K"),
        ("board_upload.maximum_ram_size = 64", "bytes of RAM, the board allows 64", "a board or memory"),
        (
            "custom_tinyml_kernels = cmsis-nn",
            "model digits requires CMSIS-NN, which the project does not have",
            "set custom_tinyml_cmsis_nn to its folder",
        ),
        ("custom_tinyml_cmsis_nn = nowhere", "there is no Include/arm_nnfunctions.h in", "a checkout of"),
        ("board_build.mcu = atmega328p", "atmega328p, is an 8-bit AVR", "a board with Cortex-M"),
        ("custom_tinyml_target = cortex-m9", "unknown target 'cortex-m9'", "cortex-m4"),
    ],
)
def test_mistakes_get_one_clear_message(
    make_project: MakeProject, option: str, message: str, hint: str
) -> None:
    output = sample(make_project(f"{QEMU}{option}\n")).fail()
    assert "tinyml: error:" in output
    assert message in output
    assert hint in output
