# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arenas of several models: each has its own, or all in a memory share one. On our QEMU Cortex-M4."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.zephyr.building import Build, copy_of_digits, rewrite, symbols, west_build

BOARD = "qemu_cortex_m4"
SHARED = "CONFIG_TINYML_ARENA_SHARED=y\n"
MODELS = """
models:
  - name: digits
    file: model.onnx
{first}  - name: second
    file: large.onnx
{second}  - name: third
    file: model.onnx
{third}"""
IN_PSRAM = "    arena_region: psram0\n"
WEIGHTS_IN_RAM = "    weights: ram\n"
WEIGHTS_IN_PSRAM = "    weights: psram0\n"


def configure(app: Path, shared: bool, first: str = "", second: str = "", third: str = "") -> None:
    """Settings that are as they were stay untouched: CMake takes longer than all else."""
    rewrite(app / "prj.conf", "CONFIG_TINYML=y\n" + (SHARED if shared else ""))
    rewrite(app / "tinyml.yaml", MODELS.format(first=first, second=second, third=third))


def write_large_model(path: Path) -> None:
    """One layer on 4000 numbers."""
    from onnx import TensorProto, helper, save

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4000]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "large", ports[:1], ports[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Three models, the second of which needs a larger arena than the others."""
    app = copy_of_digits(tmp_path_factory.mktemp("zephyr") / "app")
    main = app / "src" / "main.c"
    includes = "#include <digits.h>\n#include <second.h>\n#include <third.h>"
    text = main.read_text().replace("#include <digits.h>", includes)
    main.write_text(text.replace("int main(void)\n{", "int main(void)\n{\n\tsecond_run();\n\tthird_run();"))
    write_large_model(app / "large.onnx")
    configure(app, shared=False)
    return west_build(app, app / "build", BOARD)


def arenas(build: Build) -> dict[str, range]:
    """Where each model's part lies; its size is the compiler's, the symbol's may be that of the whole."""
    names = symbols(build.elf)
    sizes = {
        name: int(
            (build.folder / "tinyml" / name / f"{name}.h").read_text().split("_ARENA_BYTES ")[1].split()[0]
        )
        for name in ("digits", "second", "third")
    }
    return {
        name: range(names[f"{name}_arena"][0], names[f"{name}_arena"][0] + size)
        for name, size in sizes.items()
    }


def section_of_weights(build: Build, model: str) -> str:
    """The one section of all tables of a model that are in the image."""
    text = (build.folder / "tinyml" / model / f"{model}_weights.h").read_text()
    names = symbols(build.elf)
    tables = [table for table in re.findall(r"(?m)^static const \w+ (\w+)\[", text) if table in names]
    (section,) = {names[table][2] for table in tables}
    return section


def noinit_bytes(build: Build) -> int:
    names = symbols(build.elf)
    return names["tinyml_arena_end"][0] - names["tinyml_arena_start"][0]


def rounded_up(size: int) -> int:
    """Arenas are aligned to 16 bytes."""
    return -(-size // 16) * 16


def test_each_has_its_own(build: Build) -> None:
    configure(build.app, shared=False)
    build.again()
    first, second, third = sorted(arenas(build).values(), key=lambda part: part.start)
    assert first.stop <= second.start
    assert second.stop <= third.start
    assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")


@pytest.mark.deep
def test_one_for_all_is_as_large_as_the_largest(build: Build) -> None:
    configure(build.app, shared=True)
    build.again()
    found = arenas(build)
    assert found["digits"].start == found["second"].start == found["third"].start
    assert len(found["second"]) > len(found["digits"])
    assert noinit_bytes(build) == rounded_up(len(found["second"]))
    assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")


def test_one_in_each_memory(build: Build) -> None:
    """The weights of the first and of the third model have places of their own as well."""
    third = IN_PSRAM + WEIGHTS_IN_RAM
    configure(build.app, shared=True, first=WEIGHTS_IN_PSRAM, second=IN_PSRAM, third=third)
    build.again()
    found = arenas(build)
    assert found["second"].start == found["third"].start
    assert symbols(build.elf)["second_arena"][2] == "PSRAM"
    assert symbols(build.elf)["digits_arena"][2] == "noinit"
    assert section_of_weights(build, "digits") == "tinyml_weights_PSRAM"
    assert section_of_weights(build, "third") == "datas"
    assert noinit_bytes(build) == rounded_up(len(found["digits"]))
    assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")


def test_unused_locks_take_no_memory(build: Build) -> None:
    assert not [name for name in symbols(build.elf) if name.endswith("_lock") and name.startswith("digits")]
