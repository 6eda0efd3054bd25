# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`west build` of the digits sample: what it makes, and what it makes again when something changes."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support import offline
from tests.zephyr.building import (
    ROOT,
    Build,
    change_model,
    copy_of_digits,
    options_of,
    run,
    symbols,
    west_build,
)

PLUGIN = Path(__file__).resolve().parents[2] / "plugin" / "tinyml"
NOTHING_TO_DO = "ninja: no work to do."


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A model added to the application by the real command, and built. Blanks in its name are fine."""
    app = copy_of_digits(tmp_path_factory.mktemp("zephyr") / "app")
    (app / "tinyml.yaml").unlink()
    (app / "prj.conf").write_text("CONFIG_MAIN_STACK_SIZE=2048\n")
    (app / "model.onnx").rename(app / "a model.onnx")
    run(["west", "tinyml", "add", "a model.onnx", "--name", "digits"], app)
    under = offline.ALONE if offline.permitted() else ()
    return west_build(app, app / "build", "qemu_cortex_m3", under=under)


def test_a_build_needs_no_network(build: Build) -> None:
    """The image was built from scratch without one; the same goes for a model alone."""
    if not offline.permitted():
        pytest.skip(offline.WHY_NOT)
    assert build.elf.stat().st_size > 10_000
    (build.app / "a model.onnx").touch()
    said = run([*offline.ALONE, "ninja", "-C", build.folder], build.folder)
    assert "compiling model digits" in said


def test_the_image_computes_what_the_host_computed(build: Build) -> None:
    assert "PASS: 0 of 40 outputs differ" in build.in_qemu(until="right")


def test_there_is_evidence_about_the_image(build: Build) -> None:
    """Object files are compiled again with the commands of the build; bounds are those of the image."""
    path = build.app / "evidence.zip"
    run(["west", "tinyml", "evidence", "-d", build.folder, "-o", path, "--samples", "1"], build.app)
    with zipfile.ZipFile(path) as archive:
        chain = json.loads(archive.read("chain.json"))
        page = archive.read("README.md").decode()
    assert {row["source"] for row in chain["objects"]} > {"digits.c"}
    assert {row["compiled_again"] for row in chain["objects"]} == {"the same code and data"}
    assert chain["image"]["sha256"] == sha256(build.elf.read_bytes()).hexdigest()
    assert "writes to the stack and to `tinyml_arena_digits`" in page
    assert "## Problems" not in page


def test_the_arena_has_its_place(build: Build) -> None:
    names = symbols(build.elf)
    address, size, section = names["digits_arena"]
    assert section == "noinit"
    assert address % 16 == 0
    assert names["tinyml_arena_start"][0] == address
    assert names["tinyml_arena_end"][0] == address + size


def test_only_kernels_in_use_are_in_the_image(build: Build) -> None:
    assert (build.folder / "libtinyml_cmsis_nn.a").exists()
    commands = json.loads((build.folder / "compile_commands.json").read_text())
    compiled = {command["file"] for command in commands if "/tinyml/runtime/" in command["file"]}
    # Applications call the front ends and the counters of a watch, too.
    compiled = {file for file in compiled if not re.search("/runtime/(signal|watch)/", file)}
    needed = json.loads(build.generated("digits.json"))["sources"]["runtime"]
    assert compiled == {str(PLUGIN / "runtime" / name) for name in needed}
    assert not [
        name for name in symbols(build.elf) if name.startswith(("arm_lstm", "arm_svdf", "arm_transpose"))
    ]


def test_only_the_files_of_cmsis_nn_that_models_call_are_compiled(build: Build) -> None:
    commands = json.loads((build.folder / "compile_commands.json").read_text())
    assert not [command for command in commands if "/cmsis-nn/Source/" in command["file"]]
    (collected,) = [command["file"] for command in commands if command["file"].endswith("/cmsis_nn.c")]
    needed = json.loads(build.generated("digits.json"))["sources"]["cmsis-nn"]
    assert re.findall(r"#include <\.\./(.*)>", Path(collected).read_text()) == needed


def test_glue_code_around_model_and_kernels_is_small(build: Build) -> None:
    """Glue in flash: code and descriptions of the model that are neither its tables nor kernels."""
    tables = re.findall(r"(?m)^static const \w+ (\w+)\[", build.generated("digits_weights.h"))
    ours = {
        name: (size, section)
        for name, (_, size, section) in symbols(build.elf).items()
        if name.startswith(("digits_", "tinyml_arena")) and name not in tables
    }
    flash = sum(size for size, section in ours.values() if section in ("text", "rodata"))
    ram = sum(size for size, section in ours.values() if section in ("datas", "bss"))
    assert 0 < flash < 1024, ours
    assert ram < 64, ours


def test_the_report_of_the_image(build: Build) -> None:
    run(["west", "tinyml", "report", "-d", build.folder, "digits", "--json", "image.json"], build.app)
    report = json.loads((build.app / "image.json").read_text())
    image, names = report["image"], symbols(build.elf)
    assert image["ram_bytes"] >= report["arena_bytes"] == names["digits_arena"][1]
    model = image["constants_bytes"] + image["code_bytes"]
    assert report["weights_bytes"] < model < report["weights_bytes"] + 2048
    kernels = sum(size for name, (_, size, _) in names.items() if name.startswith(("tinyml_dense", "arm_")))
    assert kernels <= image["kernels_bytes"] < image["image_flash_bytes"]


def test_nothing_changed_nothing_done(build: Build) -> None:
    build.again()
    assert NOTHING_TO_DO in build.again()


def test_a_changed_model_rebuilds_its_library_only(build: Build) -> None:
    build.again()
    change_model(build.app / "a model.onnx")
    assert build.compiled(build.again()) == {"digits.c"}
    assert NOTHING_TO_DO in build.again()
    change_model(build.app / "a model.onnx")
    os.utime(build.app / "a model.onnx", (10**9, 10**9))
    assert build.compiled(build.again()) == {"digits.c"}, "an older file is another one, too"
    assert NOTHING_TO_DO in build.again()


def test_changed_options_and_operators_rebuild_the_model(build: Build) -> None:
    """Also the files of `operators:` and `sources:`, and the C that a kernel names itself."""
    build.again()
    sample = ROOT / "samples" / "custom_operator"
    files = [shutil.copy(sample / f"mexican_hat.{kind}", build.app) for kind in ("py", "c")]
    more = build.app / "more" / "twice.c"
    more.parent.mkdir()
    more.write_text("static inline int twice(int x) { return 2 * x; }\n")
    with (build.app / "tinyml.yaml").open("a") as manifest:
        manifest.write(
            "    kernels: portable\n    operators: [mexican_hat.py]\n    sources: [more/twice.c]\n"
        )
    said = build.again()
    assert "compiling model digits for cortex-m3" in said
    # Other kernels need another arena, so digits.h changes, and with it what includes it; not more.
    assert build.compiled(said) <= {"digits.c", "main.c", "arenas.c"}
    assert NOTHING_TO_DO in build.again()
    assert "twice" in build.generated("digits.c")
    for file in (*files, more):
        path = Path(file)
        path.write_text(path.read_text() + "\n")
        assert "TinyML: compiling model digits" in build.again(), path.name
    assert NOTHING_TO_DO in build.again()


def test_a_model_depends_on_the_whole_compiler(build: Build) -> None:
    told = run(["ninja", "-C", build.folder, "-t", "query", "tinyml/digits/digits.c"], build.folder)
    inputs = {Path(line.strip().removeprefix("| ")).name for line in told.splitlines()}
    wanted = {path.name for kind in ("*.py", "*.j2") for path in PLUGIN.rglob(kind)}
    assert wanted <= inputs


def test_a_broken_model_stops_the_build_with_words(build: Build) -> None:
    model = build.app / "a model.onnx"
    good = model.read_bytes()
    model.write_bytes(b"not a model")
    try:
        said = build.again(check=False)
    finally:
        model.write_bytes(good)
    assert "error:" in said
    assert "a model.onnx" in said
    assert "Traceback" not in said
    build.again()


def test_a_broken_manifest_stops_the_build_with_words(build: Build) -> None:
    manifest = build.app / "tinyml.yaml"
    before = manifest.read_text()
    manifest.write_text(before.replace("file:", "flie:"))
    try:
        said = build.again(check=False)
    finally:
        manifest.write_text(before)
    assert "did you mean 'file'?" in said
    assert "Traceback" not in said


@pytest.mark.tenth
@pytest.mark.parametrize(
    "kind,message",
    [
        ("ram", "arena and state need"),
        ("arena", "the arena needs"),
        ("flash", "weights, tables and code need about"),
    ],
)
def test_a_model_over_its_budget_stops_the_build(build: Build, kind: str, message: str) -> None:
    """The message says by how much, which layers it is, and what to try."""
    manifest = build.app / "tinyml.yaml"
    before = manifest.read_text()
    manifest.write_text(f"{before}    budget: {{{kind}: 1K}}\n")
    try:
        said = build.again(check=False)
    finally:
        manifest.write_text(before)
    assert "model digits cannot be compiled" in said, "when CMake configures, before anything is built"
    assert f"digits: {message} " in said
    assert "the budget of model digits allows 1,024; " in said
    assert "conv2" in said
    assert "try: " in said


def test_the_board_is_a_budget(build: Build) -> None:
    """What the devicetree says about the board's memory reaches the compiler; models are balanced."""
    told = run(["ninja", "-C", build.folder, "-t", "commands", "tinyml/digits/digits.c"], build.folder)
    assert "--optimize=balanced" in told
    kernel = (build.folder / "tinyml" / "digits" / "digits.kernels").read_text().split()[0]
    for source in ("/digits/digits.c", kernel):
        assert options_of(build.folder, source) == ["-Os", "-O2"]
    assert "--limit=ram=65536,the board" in told
    assert "--limit=flash=262144,the board" in told


@pytest.mark.deep
def test_beside_cmsis_nn_of_the_application(tmp_path: Path) -> None:
    """CONFIG_CMSIS_NN compiles some of its functions. Models get these, and the others from our library."""
    dsp = tmp_path / "cmsis-dsp"  # which CONFIG_CMSIS_NN selects, and nothing here calls
    (dsp / "zephyr").mkdir(parents=True)
    (dsp / "zephyr" / "module.yml").write_text("name: cmsis-dsp\nbuild:\n  cmake: .\n  kconfig-ext: True\n")
    (dsp / "CMakeLists.txt").touch()
    app = copy_of_digits(tmp_path / "app")
    with (app / "prj.conf").open("a") as config:
        config.write("CONFIG_CMSIS_NN=y\nCONFIG_CMSIS_NN_CONVOLUTION=y\nCONFIG_CMSIS_NN_NNSUPPORT=n\n")
        config.write("CONFIG_TINYML_KERNELS_CMSIS_NN=y\n")
    built = west_build(app, tmp_path / "build", "qemu_cortex_m3", f"-DEXTRA_ZEPHYR_MODULES={dsp}")
    collected = (built.folder / "tinyml" / "cmsis_nn.c").read_text()
    sizes, support = "arm_convolve_get_buffer_sizes_s8.c", "arm_q7_to_q15_with_offset.c"
    assert sizes in collected, "a function that both libraries have"
    assert support in collected
    linked = (built.folder / "zephyr" / "zephyr.map").read_text()
    assert f"libmodules__cmsis-nn.a({sizes}.obj)" in linked
    assert f"libmodules__cmsis-nn.a({support}.obj)" not in linked
    assert "arm_q7_to_q15_with_offset" in symbols(built.elf)
    assert "PASS: 0 of 40 outputs differ" in built.in_qemu(until="right")
