# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`west tinyml add | list | remove` as a user types them, in a workspace with only west's own files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

from tinyml.verbs import VERBS
from tinyml.verbs.base import commands_typed_as, main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits" / "model.onnx"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A west workspace whose manifest is this project; Zephyr itself is not needed for these commands."""
    (tmp_path / ".west").mkdir()
    (tmp_path / ".west" / "config").write_text("[manifest]\npath = west-tinyml\nfile = west.yml\n")
    (tmp_path / "west-tinyml").symlink_to(ROOT, target_is_directory=True)
    return tmp_path


@pytest.fixture
def app(workspace: Path) -> Path:
    folder = workspace / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(
        "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\nproject(app)\n"
    )
    (folder / "prj.conf").write_text("# mine\nCONFIG_LOG=y\n")
    copyfile(DIGITS, folder / "digits.onnx")
    return folder


def west(cwd: Path, *words: str | Path, **environment: str) -> tuple[int, str]:
    """Run ``west tinyml``; return its exit code and output."""
    command = [sys.executable, "-m", "west", "tinyml", *map(str, words)]
    clean = {key: value for key, value in os.environ.items() if key != "ZEPHYR_BASE"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**clean, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_model_is_added_listed_and_removed(app: Path) -> None:
    before = contents(app)
    code, said = west(app / "src", "add", "../digits.onnx")
    assert code == 0, said
    assert (app / "tinyml.yaml").read_text().endswith("models:\n  - name: digits\n    file: digits.onnx\n")
    config = (app / "prj.conf").read_text()
    assert config == "# mine\nCONFIG_LOG=y\n# For tinyml.yaml, by `west tinyml add`\nCONFIG_TINYML=y\n"
    for needed in ("arena", "weights", "input", "output", "#include <digits.h>"):
        assert needed in said

    code, said = west(app.parent, "add", "app/digits.onnx", "--app", app, "--name", "second")
    assert code == 0, said
    code, said = west(app, "list")
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["name", "digits", "second"]

    assert west(app, "remove", "second")[0] == 0
    code, said = west(app, "remove", "digits")
    assert code == 0, said
    assert "its file digits.onnx stays" in said
    assert contents(app) == before
    assert "has no models" in west(app, "list")[1]


def test_a_model_outside_the_workspace_is_copied(app: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("downloads") / "kws.onnx"
    copyfile(DIGITS, outside)
    code, said = west(app, "add", outside)
    assert code == 0, said
    assert "copied to models/kws.onnx" in said
    assert (app / "models" / "kws.onnx").read_bytes() == DIGITS.read_bytes()
    assert "file: models/kws.onnx\n" in (app / "tinyml.yaml").read_text()


def test_a_model_comes_with_a_test(app: Path) -> None:
    code, said = west(app, "add", "digits.onnx", "--test")
    assert code == 0, said
    assert "west twister --integration -T tests/digits" in said
    test = app / "tests" / "digits"
    assert "file: ../../digits.onnx" in (test / "tinyml.yaml").read_text()
    assert (test / "prj.conf").read_text().endswith("\n\nCONFIG_ZTEST=y\nCONFIG_TINYML=y\n")
    written = [path for path in test.rglob("*") if path.is_file()]
    assert len(written) == 6
    assert [path for path in written if "SPDX-License-Identifier: " not in path.read_text()[:100]] == []
    assert "#define GOLDEN_SAMPLES 8\n" in (test / "src" / "golden.h").read_text()

    before = contents(app)
    code, said = west(app, "test", "digits")
    assert (code, "--force overwrites it" in said) == (1, True)
    assert west(app, "test", "nothing")[0] == 1
    assert contents(app) == before
    assert west(app, "test", "digits", "--force")[0] == 0
    assert contents(app) == before, "the same model gives the same test"
    assert "platform_allow" not in (test / "testcase.yaml").read_text()
    assert west(app, "test", "digits", "--force", "--platform", "nrf52840dk/nrf52840")[0] == 0
    assert "      - nrf52840dk/nrf52840\n" in (test / "testcase.yaml").read_text()

    assert "and its test tests/digits stay" in west(app, "remove", "digits")[1]
    code, said = west(app, "add", "digits.onnx", "--test")
    assert (code, "`west tinyml test digits --force` then" in said) == (1, True)


def test_a_test_takes_the_users_samples(app: Path) -> None:
    assert west(app, "add", "digits.onnx")[0] == 0
    logits = np.arange(10, dtype=np.float32)
    np.savez(app / "mine.npz", in0=np.zeros((1, 1, 8, 8), np.float32), out0=logits)
    code, said = west(app, "test", "digits", "--input", "mine.npz")
    assert code == 0, said
    golden = (app / "tests" / "digits" / "src" / "golden.h").read_text()
    assert "given by the user" in golden
    assert "0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f," in golden

    np.savez(app / "wrong.npz", in0=np.zeros((1, 1, 8, 8), np.float32), out0=logits[:9])
    code, said = west(app, "test", "digits", "--input", "wrong.npz", "--force")
    assert code == 1
    assert "the output 'logits' must be float32 (1, 10), found float32 (9,)" in said


MISTAKES = {
    "missing file": (["nothing.onnx"], "there is no file nothing.onnx"),
    "a folder": (["src"], "src is not a file"),
    "not a model": (["prj.conf"], "prj.conf"),
    "not a model inside": (["fake.onnx"], "fake.onnx"),
    "twice": (["digits.onnx"], "digits.onnx is already in tinyml.yaml, as 'digits'"),
    "clash": (
        ["other.onnx", "--name", "digits"],
        "there is already a model called 'digits', from digits.onnx",
    ),
    "clash in case": (["other.onnx", "--name", "Digits"], "'digits' and 'Digits' differ only in case"),
    "no identifier": (["other.onnx", "--name", "my-model"], "'my-model' cannot be a model's name"),
    "no app": (["other.onnx", "--app", "src"], "src is not a Zephyr application: it has no CMakeLists.txt"),
    "no target": (["other.onnx", "--target", "z80"], "unknown target 'z80'"),
    "shape without input": (["other.onnx", "--shape", "1x2"], "--shape: '1x2' does not name an input"),
    "no shape": (["other.onnx", "--shape", "x=1xx"], "'1xx' is not a shape for 'x'"),
    "inputs for no test": (["other.onnx", "--input", "x.npz"], "try: add --test"),
}


@pytest.mark.parametrize("words,message", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_explained_and_nothing_is_written(app: Path, words: list[str], message: str) -> None:
    (app / "tinyml.yaml").write_text("models:\n  - name: digits\n    file: digits.onnx\n")
    copyfile(DIGITS, app / "other.onnx")
    (app / "fake.onnx").write_bytes(b"this is not a model at all")
    before = contents(app)
    code, said = west(app, "add", *words)
    assert code == 1
    assert message in said
    assert "Traceback" not in said
    assert contents(app) == before


def test_a_model_is_replaced_by_one_with_another_interface(app: Path) -> None:
    copyfile(DIGITS.with_name("model_float.onnx"), app / "float.onnx")
    assert west(app, "add", "float.onnx", "--name", "digits")[0] == 0
    code, said = west(app, "add", "digits.onnx", "--name", "digits", "--replace")
    assert code == 0, said
    changed = [line for line in said.splitlines() if line.startswith("changed: ")]
    assert changed
    assert len({line.partition(" -> ")[0] for line in changed}) == len(changed), "a change is stated twice"
    assert (app / "tinyml.yaml").read_text().count("name: digits") == 1
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    interface:\n      input: int8[1,49,10,1]\n")
    before = contents(app)
    code, said = west(app, "add", "float.onnx", "--name", "digits", "--replace")
    assert code == 1
    assert "pinned is int8[1,49,10,1]" in said
    assert contents(app) == before
    assert west(app, "add", "float.onnx", "--name", "kws", "--replace")[0] == 1


def test_float_layers_and_the_fpu(app: Path) -> None:
    copyfile(DIGITS.with_name("model_float.onnx"), app / "float.onnx")
    assert "CONFIG_TINYML enables the FPU" in west(app, "add", "float.onnx", "--name", "a")[1]
    with (app / "prj.conf").open("a") as config:
        config.write("CONFIG_FPU=n\n")
    assert "prj.conf has CONFIG_FPU off: remove that line" in west(app, "add", "float.onnx", "--name", "b")[1]


def test_removing_an_unknown_model(app: Path) -> None:
    code, said = west(app, "remove", "kws")
    assert code == 1
    assert "has no model called 'kws'" in said


def test_list_says_that_a_file_is_missing(app: Path) -> None:
    (app / "tinyml.yaml").write_text("models:\n  - name: a\n    file: gone.onnx\n")
    code, said = west(app, "list")
    assert (code, "missing" in said) == (1, True)


def test_list_says_that_other_files_are_missing(app: Path) -> None:
    (app / "a.onnx").write_bytes(b"")
    (app / "tinyml.yaml").write_text(
        "models:\n  - name: a\n    file: a.onnx\n    operators: [b.py]\n    quantize: {calibration: c.npz}\n"
    )
    code, said = west(app, "list")
    assert (code, said.splitlines()[-2:]) == (1, ["missing: b.py of a", "missing: c.npz of a"])


def test_list_says_what_the_build_quantises(app: Path) -> None:
    (app / "a.onnx").write_bytes(b"")
    settings = "calibration: calib.npz\n      method: minmax\n      keep_float: [conv1]"
    (app / "tinyml.yaml").write_text(
        f"models:\n  - name: a\n    file: a.onnx\n    quantize:\n      {settings}\n"
    )
    _, said = west(app, "list")
    assert "quantised: int8 calibrated on calib.npz, method minmax, keep float conv1" in " ".join(
        said.split()
    )


def test_help_is_that_of_the_verbs(app: Path) -> None:
    code, said = west(app, "add", "--help")
    assert code == 0
    assert said.startswith("usage: west tinyml add ")
    assert west(app)[1] == west(app, "--help")[1]
    code, said = west(app, "add", "digits.onnx", "--arena=3")
    assert code == 2
    assert said.startswith("usage: west tinyml add ")
    assert "unknown arguments: --arena=3" in said


def test_the_workspace_wins_over_an_installed_copy(app: Path, tmp_path: Path) -> None:
    """As after `pip install` without -e, and a later `west update`."""
    site = tmp_path / "site-packages"
    (site / "tinyml").mkdir(parents=True)
    (site / "tinyml" / "__init__.py").write_text("raise RuntimeError('the installed copy runs')\n")
    metadata = site / "west_tinyml-0.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: west-tinyml\nVersion: 0.0.1\n")
    code, said = west(app, "list", PYTHONPATH=str(site))
    assert code == 0, said
    assert "the installed copy runs" not in said
    assert "pip has installed west-tinyml 0.0.1; the workspace has " in said


def test_a_missing_python_package_is_explained(app: Path, tmp_path: Path) -> None:
    shadow = tmp_path / "shadow" / "rich"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ImportError('no rich here')\n")
    code, said = west(app, "list", PYTHONPATH=str(shadow.parent))
    assert code == 1
    assert "no rich here" in said
    assert "-m pip install" in said
    assert "Traceback" not in said


def test_hints_are_commands_that_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """West may have its own Python, without a program `tinyml`; what a file is called stays as it is."""
    wrong = tmp_path / "my tinyml run"
    wrong.write_text("{}")
    for prog in ("west tinyml", "tinyml"):
        assert main(VERBS, ["runtime", str(wrong)], prog=prog, version="1") == 1
        said = capsys.readouterr().err
        assert f"`{prog} compile` writes" in said
    typed = commands_typed_as("west tinyml", ["add", "run"])
    kept = "west tinyml add x, tools/tinyml run, tinyml run.onnx, tinyml runs, west-tinyml add"
    assert typed(f"tinyml run, {kept}") == f"west tinyml run, {kept}"
