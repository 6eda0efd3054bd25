# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a PlatformIO project says about its models, decided without PlatformIO."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tinyml.base.errors import BudgetError, ConfigError
from tinyml.projects.platformio import checked_limits, cmsis_nn, model_files
from tinyml.projects.platformio import project as projects
from tinyml.projects.platformio.boards import Board
from tinyml.projects.platformio.project import Model
from tinyml.report.describe import describe
from tinyml.settings.options import Options
from tinyml.settings.written import parse_bytes
from tinyml.setup import requirements
from tinyml.setup.compiler_sources import fingerprint
from tinyml.setup.workspace import CMSIS_NN_MARK

REPOSITORY = Path(__file__).resolve().parents[2]
RUNTIME = REPOSITORY / "plugin" / "tinyml" / "runtime"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with model files in all the places that count, and some that do not."""
    for file in ("models/kws.onnx", "models/notes.txt", "model/wake.tflite", "top.ONNX", "src/hidden.onnx"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(b"")
    return tmp_path


def options(**given: str) -> dict[str, str]:
    return {"platform": "native", **{f"custom_tinyml_{name}": value for name, value in given.items()}}


def read(project: Path, board: Board | None = None, **given: str) -> list[Model]:
    return projects.read_models(project, options(**given), board or Board(), cmsis_nn=True)


def test_models_by_convention(project: Path) -> None:
    assert [(model.name, model.path.name) for model in read(project)] == [
        ("kws", "kws.onnx"),
        ("wake", "wake.tflite"),
        ("top", "top.ONNX"),
    ]


def test_a_manifest_replaces_the_convention(project: Path) -> None:
    (project / "tinyml.yaml").write_text(
        "models:\n  - {name: hey, file: model/wake.tflite, kernels: cmsis-nn}\n"
    )
    (model,) = read(project)
    assert (model.name, model.path, model.options.kernels) == (
        "hey",
        project / "model/wake.tflite",
        "cmsis-nn",
    )


def test_listed_models_replace_both(project: Path) -> None:
    (project / "tinyml.yaml").write_text("models: [{name: hey, file: model/wake.tflite}]\n")
    listed = "\nmodels\\kws.onnx\nhidden = src/hidden.onnx"
    assert [(model.name, model.path) for model in read(project, models=listed)] == [
        ("kws", project / "models/kws.onnx"),
        ("hidden", project / "src/hidden.onnx"),
    ]
    assert [model.name for model in read(project, models="models/kws.onnx, top.ONNX")] == ["kws", "top"]
    assert read(project, models="") == []


def test_two_models_of_one_name_are_refused(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"models/kws\.onnx and top\.ONNX would both be called 'kws'"):
        read(project, models="models/kws.onnx, kws=top.ONNX")
    with pytest.raises(ConfigError, match=r"model 'kws' has kws_weights in its C"):
        read(project, models="models/kws.onnx, kws_weights=top.ONNX")


def test_options_reach_every_model(project: Path) -> None:
    models = read(
        project, target="cortex-m7", kernels="cmsis-nn", shapes="audio=1x16x8\nstate = 4", arena="2K"
    )
    assert {(m.options.target, m.options.kernels, m.arena_limit_bytes) for m in models} == {
        ("cortex-m7", "cmsis-nn", 2048)
    }
    assert models[0].options.shapes == {"audio": (1, 16, 8), "state": (4,)}


@pytest.mark.parametrize(
    "board, target",
    [
        (Board(), "host"),
        (Board("cortex-m0"), "cortex-m0"),  # nRF51
        (Board("Cortex-M0Plus"), "cortex-m0"),  # RP2040, SAMD21
        (Board("cortex-m3"), "cortex-m3"),  # STM32F1
        (Board("cortex-m4"), "cortex-m4"),  # nRF52, STM32F4
        (Board("cortex-m4f"), "cortex-m4"),
        (Board("cortex-m7"), "cortex-m7"),  # i.MX RT, STM32H7
        (Board("cortex-m33"), "cortex-m33"),  # RP2350, STM32U5
        (Board("cortex-m33", mcu="rp2350-riscv"), "riscv32"),
        (Board("cortex-m85"), "cortex-m85"),  # RA8
        (Board("cortex-a7"), "generic"),
        (Board(march="rv32imac", mcu="fe310"), "riscv32"),
        (Board(march="rv64imac", mcu="fu540"), "generic"),
        (Board(mcu="esp32c3"), "riscv32"),
        (Board(mcu="esp32p4"), "riscv32"),
        (Board(mcu="esp32s3"), "generic"),  # Xtensa
        (Board(mcu="esp8266"), "generic"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.cpu or value.mcu or "none",
)
def test_target_follows_the_board(project: Path, board: Board, target: str) -> None:
    assert {model.options.target for model in read(project, board)} == {target}


@pytest.mark.parametrize("mcu", ["atmega328p", "attiny85", "at90can128", "avr128db48"])
def test_processors_that_are_too_small_are_refused(project: Path, tmp_path: Path, mcu: str) -> None:
    with pytest.raises(ConfigError, match=f"{mcu}, is an 8-bit AVR"):
        read(project, Board(mcu=mcu))
    assert read(project, Board(mcu=mcu), models="") == []


def checkout(folder: Path, *files: Path) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


def test_cmsis_nn_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    old = checkout(tmp_path / "old", CMSIS_NN_MARK)
    new = checkout(tmp_path / "new", CMSIS_NN_MARK, cmsis_nn.VERSION_MARK)
    assert cmsis_nn.choose(None, [tmp_path, old, new]) == new
    assert cmsis_nn.choose(None, [tmp_path, old]) is None
    assert cmsis_nn.outdated([tmp_path, old]) == old
    assert cmsis_nn.outdated([tmp_path, new]) is None
    assert cmsis_nn.choose(new, []) == new
    with pytest.raises(ConfigError, match="older than version 7"):
        cmsis_nn.choose(old, [new])
    with pytest.raises(ConfigError, match=r"there is no Include/arm_nnfunctions\.h in"):
        cmsis_nn.choose(tmp_path / "nowhere", [new])


def test_settings(project: Path) -> None:
    assert projects.read_settings(project, options()) == projects.Settings(None)
    assert projects.Settings().flags([]) == ["-O2"]
    assert projects.Settings(optimize="image").flags(["size"]) == []
    assert projects.Settings().flags(["size", "size"]) == ["-Os"]
    assert projects.Settings().flags(["size", "ram"]) == ["-O2"], "kernels serve all models"
    given = options(cmsis_nn="third_party\\CMSIS-NN", optimize="size")
    assert projects.read_settings(project, given) == projects.Settings(
        project / "third_party/CMSIS-NN", "size"
    )
    with pytest.raises(ConfigError, match="unknown choice 'both'"):
        projects.read_settings(project, options(optimize="both"))


def test_cmsis_nn_cannot_be_requested_if_it_is_missing(project: Path) -> None:
    with pytest.raises(ConfigError, match="model kws requires CMSIS-NN, which the project does not have"):
        projects.read_models(project, options(kernels="cmsis-nn"), Board(), cmsis_nn=False)


def test_key_changes_with_everything_that_matters() -> None:
    path, plain = Path("kws.onnx"), Options("kws", "host", "portable")
    base = Model("kws", path, plain)
    others = [
        replace(plain, target="cortex-m4"),
        replace(plain, kernels="cmsis-nn"),
        replace(plain, shapes={"x": (1, 2)}),
        replace(plain, npu="ethos-u55-64"),
    ]
    keys = {
        base.key("a"),
        base.key("b"),
        Model("kws", path, plain, 100).key("a"),
        *(Model("kws", path, other).key("a") for other in others),
    }
    assert len(keys) == 7


@pytest.mark.parametrize("text, size", [("100", 100), ("24K", 24576), ("24 KiB", 24576), ("1m", 1048576)])
def test_amounts_of_memory(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["audio", "=1x2", "audio=1x0", "audio=1,2"])
def test_bad_shapes_are_refused(project: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"does not name an input|is not a shape for 'audio'"):
        read(project, shapes=text)


def test_external_weights_are_found(tmp_path: Path) -> None:
    """The raw search agrees with what onnx itself writes."""
    weights = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])],
        [weights],
    )
    model = helper.make_model(graph)
    onnx.save(model, tmp_path / "inside.onnx")
    onnx.save(
        model, tmp_path / "outside.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    assert model_files.external_files(tmp_path / "inside.onnx") == []
    assert model_files.external_files(tmp_path / "outside.onnx") == [tmp_path / "w.bin"]


def test_fingerprint_sees_every_change(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    seen = {fingerprint(tmp_path)}
    (tmp_path / "a.py").write_text("2")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "t.j2").write_text("")
    seen.add(fingerprint(tmp_path))
    assert len(seen) == 4


LAYERS = [
    {"name": "conv", "macs": 9, "kernel": "tinyml_conv_f32", "weights_bytes": 50, "live_bytes": 1000},
    {"name": "pool", "macs": 0, "kernel": "pool", "weights_bytes": 0, "live_bytes": 900},
    {"name": "dense", "macs": 9, "kernel": "tinyml_dense_f32", "weights_bytes": 150, "live_bytes": 10},
]
SUMMARY = {"name": "kws", "arena_bytes": 1000, "state_bytes": 200, "weights_bytes": 200, "layers": LAYERS}


@pytest.mark.parametrize(
    "limit, board, message",
    [
        (
            None,
            Board("", 1200, 100),
            "weights need 200 bytes of flash, the board allows 100; most of it: dense 150, conv 50",
        ),
        (
            None,
            Board("", 1199, 200),
            "need 1,200 bytes of RAM, the board allows 1,199; at its peak: conv 1,000",
        ),
        (999, Board(), "the arena needs 1,000 bytes of RAM, custom_tinyml_arena allows 999"),
    ],
)
def test_over_budget(limit: int | None, board: Board, message: str) -> None:
    model = Model("kws", Path("kws.onnx"), Options(), limit)
    with pytest.raises(BudgetError, match=message) as caught:
        checked_limits.check_budget(SUMMARY, model, board)
    assert "an int8 model instead of a float one" in caught.value.hint


def test_over_the_budget_of_the_manifest() -> None:
    model = Model("kws", Path("kws.onnx"), Options(), None, {"flash": 199})
    with pytest.raises(BudgetError, match=r"200 bytes of flash, tinyml\.yaml allows 199"):
        checked_limits.check_budget(SUMMARY, model, Board())


def test_within_budget() -> None:
    model = Model("kws", Path("kws.onnx"), Options(), 1000)
    checked_limits.check_budget(SUMMARY, model, Board("", 1200, 200))


def test_stale_files_go_and_objects_of_current_models_stay(tmp_path: Path) -> None:
    """Arduino's objects are called kws.c.o, everybody else's kws.o."""
    keep = {"kws.c", "kws.h", "kws_weights.h", "kws.json", "kws.o", "kws.c.o"}
    for file in (*keep, "old.c", "old_weights.h", "old.c.o", "kws2.h"):
        (tmp_path / file).touch()
    model_files.remove_stale(tmp_path, ["kws"])
    assert {path.name for path in tmp_path.iterdir()} == keep


def test_library_manifest_agrees_with_the_package() -> None:
    manifest = json.loads((REPOSITORY / "library.json").read_text())
    assert manifest["version"] == tinyml.__version__
    for key in ("extraScript", "srcDir", "includeDir"):
        assert (REPOSITORY / manifest["build"][key]).exists()
    for example in manifest["examples"]:
        for file in example["files"]:
            assert (REPOSITORY / example["base"] / file).is_file()


def test_platformio_accepts_the_library_manifest() -> None:
    pytest.importorskip("platformio")
    from platformio.package.manifest.parser import ManifestParserFactory
    from platformio.package.manifest.schema import ManifestSchema

    found = ManifestParserFactory.new_from_file(str(REPOSITORY / "library.json")).as_dict()
    found.pop("license")  # PlatformIO asks a server whether it knows the licence
    assert ManifestSchema().load_manifest(found)["authors"]


def test_requirements_agree_with_pyproject() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    (block,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r'"([^"]+)"', block)) == sorted(requirements.REQUIREMENTS.values())


# In a virtual environment of its own: what happens where the requirements are missing.

INSTALL = (
    "from tinyml.projects.platformio.install import install\nprint('installed', len(install(allowed={})))\n"
)


def run_in(environment: Path, wheels: Path, allowed: bool = True) -> subprocess.CompletedProcess[str]:
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    variables = {"PYTHONPATH": str(REPOSITORY / "plugin"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return subprocess.run(
        [python, "-c", INSTALL.format(allowed)],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def empty_wheel(folder: Path, requirement: str, module: str) -> None:
    """A wheel that fulfils a requirement with an empty module."""
    name = re.split("[>=]", requirement)[0]
    info = f"{name}-99.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-99.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def test_missing_requirements_are_installed_if_allowed(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    for module, requirement in requirements.REQUIREMENTS.items():
        empty_wheel(tmp_path, requirement, module)
    refused = run_in(tmp_path / "venv", tmp_path, allowed=False)
    assert refused.returncode != 0
    assert "which PlatformIO's Python does not have" in refused.stderr
    assert '-m pip install "numpy>=1.24" "onnx>=1.15"' in refused.stderr
    assert "custom_tinyml_install = yes" in refused.stderr
    done = run_in(tmp_path / "venv", tmp_path)
    assert f"installed {len(requirements.REQUIREMENTS)}" in done.stdout, done.stderr
    assert "installed 0" in run_in(tmp_path / "venv", tmp_path).stdout


def test_requirements_that_cannot_be_installed_are_named(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    done = run_in(tmp_path / "venv", tmp_path)
    assert done.returncode != 0
    assert "the model compiler requires numpy>=1.24, onnx>=1.15" in done.stderr
    assert "No module named pip" in done.stderr
    assert '-m pip install "numpy>=1.24" "onnx>=1.15"' in done.stderr


def test_every_option_is_documented() -> None:
    page = (REPOSITORY / "docs" / "platformio.md").read_text()
    documented = dict(re.findall(r"^\| `custom_tinyml_(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert documented == projects.OPTIONS


def test_the_report_fits_a_terminal() -> None:
    kind = {"shape": [1, 8], "dtype": "int8", "bytes": 8}
    ends = {"inputs": [{"name": "x" * 90, **kind}], "outputs": [{"name": "y", **kind}]}
    layers = [{**layer, "op": "Conv", "name": "a/b;" + "c/" * 99} for layer in LAYERS]
    summary = {**SUMMARY, **ends, "target": "host", "arena_lower_bound_bytes": 9, "layers": layers}
    for columns in (80, 100):
        lines = describe(summary, columns).splitlines()
        assert max(map(len, lines)) <= columns
        assert len(lines) == 4 + 2 + 1 + len(LAYERS)
        assert all("..." in line and "c/c/c/ " in line for line in lines[-3:])


def test_a_setting_with_one_value_gets_all_of_the_text(project: Path) -> None:
    """Only lists are split: of two values, the first must not be lost without a word."""
    with pytest.raises(ConfigError, match="unknown kernels 'portable, auto'"):
        read(project, kernels="portable, auto")
