# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models as packages for other build systems: each is built with what is here, as its users build it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tinyml.cores.targets import find_target
from tinyml.setup.installation import cmake_package
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
NAMES = "zero,one,two,three,four,five,six,seven,eight,nine"

ARDUINO_H = """
#include <stdio.h>
#include <stdlib.h>
struct Printer {
	void begin(long) {}
	void println(const char *text) { puts(text); }
	void println(int number) { printf("%d\\n", number); }
};
extern Printer Serial;
static inline void delay(int) { exit(0); }
void setup();
void loop();
"""
CORE = "#include <Arduino.h>\nPrinter Serial;\nint main() { setup(); for (;;) loop(); }\n"
PROGRAM = """
#include <stdio.h>
#include <digits.h>
int main(void)
{
	printf("status %d, %d classes\\n", digits_run(), DIGITS_OUTPUT_ELEMENTS);
	return 0;
}
"""


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_arduino_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the IDE builds it: every source below src/ with src/ as the only folder for headers."""
    library, built = tmp_path / "tinyml_digits", tmp_path / "built"
    words = ["arduino", str(DIGITS), "--name", "digits", "--classes", NAMES, "-o", str(library)]
    assert main(words) == 0
    facts = dict(line.split("=", 1) for line in (library / "library.properties").read_text().splitlines())
    assert {"name", "version", "author", "maintainer", "sentence", "category", "url"} <= set(facts)
    assert re.fullmatch(r"\d+\.\d+\.\d+", facts["version"])
    assert (library / "src" / facts["includes"]).is_file()
    built.mkdir()
    (built / "Arduino.h").write_text(ARDUINO_H)
    (built / "core.cpp").write_text(CORE)
    sketch = (library / "examples" / "tinyml_digits" / "tinyml_digits.ino").read_text()
    (built / "sketch.cpp").write_text(f"#include <Arduino.h>\n{sketch}")
    sources = sorted((library / "src").rglob("*.c"))
    for number, source in enumerate(sources):
        run("gcc", "-std=gnu11", "-Os", f"-I{library / 'src'}", "-c", source, "-o", built / f"{number}.o")
    flags = ["-fpermissive", f"-I{library / 'src'}", f"-I{built}", "-o", built / "program"]
    run("g++", *flags, built / "core.cpp", built / "sketch.cpp", *sorted(built.glob("*.o")), "-lm")
    assert run(built / "program").strip() in NAMES.split(",")
    assert main(words) == 0, "the same folder again"
    assert main([*words[:-1], str(built)]) == 1
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["setup", "loop"])
def test_functions_of_a_sketch_are_no_names(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / f"{name}.onnx"
    model.write_bytes(DIGITS.read_bytes())
    for words in ([str(DIGITS), "--name", name], [str(model)]):
        assert main(["arduino", *words, "-o", str(tmp_path / "library")]) == 1
        said = capsys.readouterr().err
        assert f"{name}() is a function of Arduino's" in said
        assert f"--name {name}_model" in said
    assert not (tmp_path / "library").exists()


IDF = """cmake_minimum_required(VERSION 3.20)
project(firmware C)
set(COMPONENT_LIB component)
function(idf_component_register)
  cmake_parse_arguments(arg "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  add_library(component STATIC ${arg_SRCS})
  target_include_directories(component PUBLIC ${arg_INCLUDE_DIRS})
endfunction()
add_subdirectory(components/digits)
add_executable(program main.c)
target_link_libraries(program component m)
"""


def test_a_component_of_esp_idf(tmp_path: Path) -> None:
    """idf_component_register() as in ESP-IDF's documentation; the rest of ESP-IDF is not here."""
    shutil.which("cmake") or pytest.skip("cmake is not installed")
    words = ["esp-idf", str(DIGITS), "--name", "digits", "-o", str(tmp_path / "components" / "digits")]
    (tmp_path / "components").mkdir()
    assert main(words) == 0
    assert 'version: "' in (tmp_path / "components" / "digits" / "idf_component.yml").read_text()
    (tmp_path / "CMakeLists.txt").write_text(IDF)
    (tmp_path / "main.c").write_text(PROGRAM)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "program") == "status 0, 10 classes\n"


def test_a_cmsis_pack(tmp_path: Path) -> None:
    """The description names files that the pack has, and they compile for the core that it requires."""
    pack = tmp_path / "tinyml.digits.0.1.0.pack"
    assert main(["cmsis-pack", str(DIGITS), "--name", "digits", "-o", str(pack)]) == 0
    before = pack.read_bytes()
    assert main(["cmsis-pack", str(DIGITS), "--name", "digits", "-o", str(pack)]) == 0
    assert pack.read_bytes() == before, "the same input gives the same bytes"
    with zipfile.ZipFile(pack) as archive:
        archive.extractall(tmp_path / "pack")
        (description,) = [name for name in archive.namelist() if name.endswith(".pdsc")]
    tree = ElementTree.parse(tmp_path / "pack" / description).getroot()
    vendor, name = tree.findtext("vendor"), tree.findtext("name")
    assert description == f"{vendor}.{name}.pdsc"
    assert [child.tag for child in tree][:4] == ["vendor", "name", "description", "url"]
    require = tree.find("conditions/condition/require")
    assert require is not None
    assert require.get("Dcore") == "Cortex-M4"
    (component,) = tree.findall("components/component")
    files = {file.get("name", ""): file.get("category") for file in component.findall("files/file")}
    assert all((tmp_path / "pack" / path).exists() for path in files)
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    sources = [tmp_path / "pack" / path for path, kind in files.items() if kind == "sourceC"]
    flags = [*find_target("cortex-m4").gcc_flags, "-std=c11", "-Os", "-Wall", "-Werror", "-fsyntax-only"]
    run("arm-none-eabi-gcc", *flags, f"-I{tmp_path / 'pack'}", *sources)


PROJECT = f"""cmake_minimum_required(VERSION 3.20)
project(firmware C)
find_package(tinyml REQUIRED)
tinyml_add_model(digits {DIGITS} OPTIONS --optimize ram)
add_executable(program main.c)
target_link_libraries(program PRIVATE digits m)
"""


def test_find_package(tmp_path: Path) -> None:
    shutil.which("cmake") or pytest.skip("cmake is not installed")
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    python = f"-DPython3_EXECUTABLE={sys.executable}"
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Dtinyml_DIR={cmake_package()}", python)
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "program") == "status 0, 10 classes\n"
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("--optimize ram", "--optimize nothing"))
    words = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "model digits cannot be compiled" in done.stderr


MESON = f"""project('firmware', 'c')
tinyml = find_program('tinyml')
model = '{DIGITS}'
out = meson.current_build_dir() / 'digits'
run_command(tinyml, 'compile', model, '-o', out, '--name', 'digits', '--target', 'generic', check: true)
sources = run_command(tinyml, 'runtime', out / 'digits.json', check: true).stdout().split()
include = [out, run_command(tinyml, 'runtime', check: true).stdout().strip() / 'include']
executable('program', 'main.c', out / 'digits.c', sources, c_args: ['-I' + include[0], '-I' + include[1]])
"""


def test_meson(tmp_path: Path) -> None:
    """The lines of docs/other_builds.md."""
    if shutil.which("meson") is None:
        pytest.skip("meson is not installed")
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "meson.build").write_text(MESON)
    run("meson", "setup", tmp_path / "build", tmp_path)
    run("meson", "compile", "-C", tmp_path / "build")
    assert run(tmp_path / "build" / "program") == "status 0, 10 classes\n"
