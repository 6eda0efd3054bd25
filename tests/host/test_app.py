# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The application's manifest: reading it, and editing it without disturbing what the user wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tinyml import __version__
from tinyml.base.errors import ConfigError
from tinyml.projects import cmake, edit, files, folder, manifest
from tinyml.projects.manifest import Manifest, ModelEntry
from tinyml.setup import requirements, zephyr_descriptor

ROOT = Path(__file__).resolve().parents[2]

FULL = """\
models:
  - name: kws
    file: models\\kws.onnx
    kernels: portable
    shapes:
      audio: [1, 16, 8]
      "state:0": 1x4
    budget: {ram: 24K, flash: 4096}
    arena_region: dtcm
  - {name: vad, file: ../shared/vad.tflite}
"""


def test_a_manifest_is_read() -> None:
    kws = ModelEntry(
        "kws",
        "models/kws.onnx",
        kernels="portable",
        shapes={"audio": "1x16x8", "state:0": "1x4"},
        budget={"ram": 24576, "flash": 4096},
        arena_region="dtcm",
    )
    assert manifest.parse(FULL, "x").models == (kws, ModelEntry("vad", "../shared/vad.tflite"))


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "models:\n", "models: []\n"])
def test_a_manifest_may_be_empty(text: str) -> None:
    assert manifest.parse(text, "x") == Manifest()


def test_no_manifest_is_no_models(tmp_path: Path) -> None:
    assert manifest.load(tmp_path / "tinyml.yaml") == Manifest()


INVALID = {
    "not yaml": ("models: [", "x is not YAML"),
    "caret": (
        "models:\n  - name: 'a\n    file: b\n",
        "x is not YAML: found unexpected end of stream, line 4, column 1",
    ),
    "caret under": (
        "models:\n  - name: a: b\n",
        "mapping values are not allowed here, line 2, column 12\n      - name: a: b\n               ^",
    ),
    "a list": ("- name: kws\n", "x must be a mapping with the key 'models', found a list"),
    "unknown key": ("model:\n", "x:1:1: unknown key 'model'\n  try: did you mean 'models'?"),
    "models a text": ("models: kws.onnx\n", "'models' must be a list, found a string"),
    "entry a text": (
        "models: [kws.onnx]\n",
        "x:1:10: model 1 must be a mapping with 'name' and 'file', found a string",
    ),
    "no file": ("models: [{name: kws}]\n", "x:1:10: model 1: 'file' must be a string, found nothing"),
    "no name": ("models: [{file: kws.onnx}]\n", "x:1:10: model 1: 'name' must be a string, found nothing"),
    "name a number": (
        "models: [{name: 1, file: a}]\n",
        "x:1:11: model 1: 'name' must be a string, found a int",
    ),
    "misspelt": (
        "models: [{name: a, file: a, kernel: auto}]\n",
        "unknown key 'kernel'\n  try: did you mean 'kernels'?",
    ),
    "kernels": (
        "models: [{name: a, file: a, kernels: fast}]\n",
        "unknown kernels 'fast'\n  try: one of: auto",
    ),
    "shape": ("models: [{name: a, file: a, shapes: {x: 1x-1}}]\n", "'1x-1' is not a shape for 'x'"),
    "shapes": ("models: [{name: a, file: a, shapes: 1x2}]\n", "'shapes' must be a mapping, found a string"),
    "budget kind": (
        "models: [{name: a, file: a, budget: {rom: 1K}}]\n",
        "x:1:38: model 1: budget: unknown key 'rom'",
    ),
    "on its line": (
        "models:\n  - name: a\n    file: a\n    kernels: fast\n",
        "x:4:5: model 1: unknown kernels 'fast'",
    ),
    "budget size": ("models: [{name: a, file: a, budget: {ram: 1G}}]\n", "'1G' is not a number of bytes"),
    "budget": ("models: [{name: a, file: a, budget: 1K}]\n", "'budget' must be a mapping, found a string"),
    "weights": ("models: [{name: a, file: a, weights: 1}]\n", "must be flash, ram or a label"),
    "region": ("models: [{name: a, file: a, arena_region: '&x'}]\n", "must be a label of the devicetree"),
    "absolute": ("models: [{name: a, file: /a.onnx}]\n", "'file' is an absolute path, '/a.onnx'"),
    "drive": ("models: [{name: a, file: 'C:\\a.onnx'}]\n", "'file' is an absolute path"),
    "twice": ("models: [{name: a, file: a}, {name: a, file: b}]\n", "x: two models are called 'a'"),
    "case": ("models: [{name: a, file: a}, {name: A, file: b}]\n", "x: 'a' and 'A' differ only in case"),
    "tables": (
        "models: [{name: a_weights, file: a}, {name: a, file: b}]\n",
        "model 'a' has a_weights in its C",
    ),
    "two lists": ("models: []\nmodels: [{name: a, file: a}]\n", "x: the key 'models' occurs twice, line 2"),
    "key twice": ("models: [{name: a, file: a, file: b}]\n", "x: the key 'file' occurs twice, line 1"),
    "no file name": (
        "models: [{name: a, file: ''}]\n",
        "x:1:20: model 1: 'file' must be a string, found nothing",
    ),
    "long budget": (
        f"models: [{{name: a, file: a, budget: {{ram: '{'9' * 5000}'}}}}]\n",
        "is not a number of bytes",
    ),
    "long shape": (
        f"models: [{{name: a, file: a, shapes: {{x: 1x{'9' * 5000}}}}}]\n",
        "is not a shape for 'x'",
    ),
    "long interface": (
        f"models: [{{name: a, file: a, interface: {{x: 'int8[{'9' * 5000}]'}}}}]\n",
        "is not a type with a shape",
    ),
    "front end": ("models: [{name: a, file: a, frontend: {kind: [a]}}]\n", "cannot be of kind ['a']"),
    "no calibration": (
        "models: [{name: a, file: a, quantize: {calibration: }}]\n",
        "quantize lacks 'calibration'",
    ),
    "bad name": ("models: [{name: my-kws, file: a}]\n", "'my-kws' cannot be a model's name"),
    "bad name, where": (
        "models: [{name: my-kws, file: a}]\n",
        "try: `name:` in tinyml.yaml: letters, digits and _ only",
    ),
}


@pytest.mark.parametrize("text,message", INVALID.values(), ids=INVALID)
def test_errors_in_a_manifest_are_reported(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        manifest.parse(text, "x")
    assert message in str(caught.value)


def test_yaml_means_what_it_looks_like() -> None:
    """YAML 1.1 reads -1:1 as -61 and 2026-01-31 as a date; keys of a merged mapping may repeat."""
    text = """\
models:
  - &first
    name: kws
    file: 2026-01-31
    quantize: {calibration: c.npz, range: -1:1}
    evaluate: {data: d.npz, min_accuracy: 0.5, range: -1:1}
    budget: {ram: 10, flash: 1_000}
  - <<: *first
    name: other
"""
    first, second = manifest.parse(text, "x").models
    request = first.request(Path())
    assert request is not None
    assert (request.scaling.low, request.scaling.high) == (-1, 1)
    assert first.evaluate is not None
    assert first.evaluate.scaling == {"range": "-1:1"}
    assert first.file == second.file == "2026-01-31"
    assert second.name == "other"
    assert first.budget == {"ram": 10, "flash": 1000}


NEW = ModelEntry(
    "fresh",
    "m/new.onnx",
    kernels="portable",
    shapes={"x:0": "1x2"},
    budget={"ram": 1024},
    arena_region="dtcm",
)
NEW_LINES = """\
- name: fresh
  file: m/new.onnx
  kernels: portable
  shapes:
    x:0: 1x2
  budget:
    ram: 1024
  arena_region: dtcm
"""


def indented(text: str, by: int) -> str:
    return re.sub(r"(?m)^(?=.)", " " * by, text)


ADDITIONS = {
    "no file": ("", edit.HEADER + "models:\n" + indented(NEW_LINES, 2)),
    "comment only": ("# mine\n", "# mine\nmodels:\n" + indented(NEW_LINES, 2)),
    "empty list": ("models: [] # none\n", "models:\n" + indented(NEW_LINES, 2).rstrip() + " # none\n"),
    "no value": ("models:\n", "models:\n" + indented(NEW_LINES, 2)),
    "not indented": (
        "models:\n- name: a # first\n  file: a.onnx\n\n# the end\n",
        f"models:\n- name: a # first\n  file: a.onnx\n{NEW_LINES}\n# the end\n",
    ),
    "indented": (
        "# top\nmodels:\n    - file: a.onnx\n      name: a # why\n",
        "# top\nmodels:\n    - file: a.onnx\n      name: a # why\n" + indented(NEW_LINES, 4),
    ),
    "no line end": (
        "models:\n  - {name: a, file: a.onnx}",
        "models:\n  - {name: a, file: a.onnx}\n" + indented(NEW_LINES, 2),
    ),
}


@pytest.mark.parametrize("before,after", ADDITIONS.values(), ids=ADDITIONS)
def test_adding_a_model_changes_nothing_else(before: str, after: str) -> None:
    assert edit.add_model(before, NEW) == after
    windows = before.replace("\n", "\r\n")
    if windows.strip() and "\n" in before:
        assert edit.add_model(windows, NEW) == after.replace("\n", "\r\n")


@pytest.mark.parametrize("before", [ADDITIONS["not indented"][0], ADDITIONS["indented"][0]])
def test_removing_what_was_added_gives_the_same_text(before: str) -> None:
    assert edit.remove_model(edit.add_model(before, NEW), "fresh") == before


def test_removing_the_only_model_removes_our_file() -> None:
    assert edit.remove_model(edit.add_model("", NEW), "fresh") is None


REMOVALS = {
    "first": (
        "models:\n  # one\n  - name: a\n    file: a\n  # two\n  - name: b\n    file: b\n",
        "models:\n  # one\n  # two\n  - name: b\n    file: b\n",
    ),
    "only": ("# mine\nmodels: # here\n  - name: a\n    file: a\n", "# mine\nmodels: [] # here\n"),
    "one line": (
        "models:\n- {name: a, file: a}\n- {name: b, file: b}\n",
        "models:\n- {name: b, file: b}\n",
    ),
}


@pytest.mark.parametrize("before,after", REMOVALS.values(), ids=REMOVALS)
def test_removing_a_model_changes_nothing_else(before: str, after: str) -> None:
    assert edit.remove_model(before, "a") == after


REPLACED = ModelEntry("a", "m/new.onnx", kernels="portable", budget={"ram": 2048, "flash": 4096})
REPLACEMENTS = {
    "in its place, with its comments": (
        "# top\nmodels:\n  # one\n  - file: a.onnx # the first\n    name: a # why\n    budget: # chip\n"
        "      ram: 1K # half\n    kernels: portable\n\n  # two\n  - {name: b, file: b} # other\n",
        "# top\nmodels:\n  # one\n  - file: m/new.onnx # the first\n    name: a # why\n    budget: # chip\n"
        "      ram: 2048 # half\n      flash: 4096\n    kernels: portable\n\n  # two\n"
        "  - {name: b, file: b} # other\n",
    ),
    "new keys": (
        "models:\n- name: a\n  file: a # mine\n# end\n",
        "models:\n- name: a\n  file: m/new.onnx # mine\n  kernels: portable\n  budget:\n    ram: 2048\n"
        "    flash: 4096\n# end\n",
    ),
    "in braces": (
        "models:\n- {name: a, file: a, budget: {ram: 1}} # mine\n- {name: b, file: b}\n",
        "models:\n- {name: a, file: m/new.onnx, budget: {ram: 2048, flash: 4096}, kernels: portable} # mine\n"
        "- {name: b, file: b}\n",
    ),
    "in brackets": (
        "models: [{file: a, name: a, kernels: auto}]",
        "models: [{file: m/new.onnx, name: a, kernels: portable, budget: {ram: 2048, flash: 4096}}]",
    ),
    "no line end": (
        "models:\n- name: a\n  file: a",
        "models:\n- name: a\n  file: m/new.onnx\n  kernels: portable\n  budget:\n"
        "    ram: 2048\n    flash: 4096",
    ),
}


@pytest.mark.parametrize("before,after", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_replacing_a_model_changes_what_differs(before: str, after: str) -> None:
    assert edit.replace_model(before, REPLACED) == after
    if "\n" in before:
        windows = before.replace("\n", "\r\n")
        assert edit.replace_model(windows, REPLACED) == after.replace("\n", "\r\n")


def test_replacing_a_model_drops_what_it_no_longer_has() -> None:
    text = (
        "models:\n- name: a\n  quantize: # now\n    calibration: c.npz\n    method: minmax # why\n  file: a\n"
    )
    entry = ModelEntry("a", "a", quantize={"calibration": "d.npz"})
    after = "models:\n- name: a\n  quantize:\n    calibration: d.npz\n  file: a\n"
    assert edit.replace_model(text, entry) == after


def test_an_entry_that_cannot_be_replaced_automatically() -> None:
    text = "models:\n- {name: b, file: b, budget: &size {ram: 1}}\n- {name: a, file: a, budget: *size}\n"
    with pytest.raises(ConfigError, match="cannot be edited automatically"):
        edit.replace_model(text, REPLACED)


def test_a_list_in_brackets_is_left_to_the_user() -> None:
    text = "models: [{name: a, file: a.onnx}]\n"
    with pytest.raises(ConfigError, match="written in brackets"):
        edit.add_model(text, NEW)
    with pytest.raises(ConfigError, match="written in brackets"):
        edit.remove_model(text, "a")


MARK = "# For tinyml.yaml, by `west tinyml add`"
SWITCHES = {
    "no file": ("", f"{MARK}\nCONFIG_TINYML=y\n"),
    "appended": ("# mine\nCONFIG_LOG=y\n", f"# mine\nCONFIG_LOG=y\n{MARK}\nCONFIG_TINYML=y\n"),
    "on already": ("CONFIG_TINYML=y # why\nCONFIG_LOG=y\n", "CONFIG_TINYML=y # why\nCONFIG_LOG=y\n"),
    "was off": (
        "A=1\nCONFIG_TINYML=n\nB=1\n",
        f"A=1\n{MARK}; before: CONFIG_TINYML=n\nCONFIG_TINYML=y\nB=1\n",
    ),
    "not set": (
        "# CONFIG_TINYML is not set\nB=1\n",
        f"{MARK}; before: # CONFIG_TINYML is not set\nCONFIG_TINYML=y\nB=1\n",
    ),
    "windows": ("CONFIG_LOG=y\r\n", f"CONFIG_LOG=y\r\n{MARK}\r\nCONFIG_TINYML=y\r\n"),
    "longer name": ("CONFIG_TINYMLISH=y\n", f"CONFIG_TINYMLISH=y\n{MARK}\nCONFIG_TINYML=y\n"),
}


@pytest.mark.parametrize("before,after", SWITCHES.values(), ids=SWITCHES)
def test_kconfig_is_switched_on_and_back(before: str, after: str) -> None:
    assert edit.switch_on(before) == after
    assert edit.switch_on(after) == after
    assert edit.switch_off(after) == before


def test_kconfig_stays_on_where_it_is_needed_or_the_users() -> None:
    needed = edit.switch_on("CONFIG_TINYML_KERNELS_PORTABLE=y\n")
    assert edit.switch_off(needed) == needed
    own = "# mine\nCONFIG_TINYML=y\nCONFIG_LOG=y\n"
    assert edit.switch_off(own) == own


def test_files_change_together_or_not_at_all(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    first.write_text("old")
    (second / "full").mkdir(parents=True)  # a file cannot be renamed onto a folder
    with pytest.raises(ConfigError, match="nothing was changed"):
        files.replace_all({first: b"new", third: b"new", second: b"new"})
    assert first.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_files_keep_their_mode_and_can_be_deleted(tmp_path: Path) -> None:
    script, gone = tmp_path / "script", tmp_path / "gone"
    script.touch(mode=0o750)
    gone.touch()
    files.replace_all({script: b"new", gone: None, tmp_path / "deep" / "er": b"x"})
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("new", 0o750)
    assert not gone.exists()
    assert (tmp_path / "deep" / "er").read_text() == "x"


def make_app(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nfind_package(Zephyr REQUIRED)\n"
    )
    return path


def test_the_application_is_found_from_inside(tmp_path: Path) -> None:
    app = make_app(tmp_path / "app")
    (app / "src" / "deep").mkdir(parents=True)
    assert folder.find_application(None, app / "src" / "deep").root == app
    assert folder.find_application(app, Path("/")).root == app


def test_a_folder_without_an_application_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "CMakeLists.txt").write_text("project(lib)\n# find_package(Zephyr)\n")
    (tmp_path / "empty").mkdir()
    for name, reason in {
        "absent": "the folder does not exist",
        "file": "it is not a folder",
        "empty": "it has no CMakeLists.txt",
        "lib": "does not call find_package(Zephyr ...)",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(reason)):
            folder.find_application(tmp_path / name, tmp_path)
    with pytest.raises(ConfigError, match="not inside a Zephyr application"):
        folder.find_application(None, tmp_path / "empty")
    (tmp_path / "empty" / "platformio.ini").touch()
    with pytest.raises(ConfigError, match="is a PlatformIO project"):
        folder.find_application(None, tmp_path / "empty")


def test_files_that_belong_to_an_application(tmp_path: Path) -> None:
    app = make_app(tmp_path / "workspace" / "repo" / "app")
    workspace, repo = tmp_path / "workspace", tmp_path / "workspace" / "repo"
    assert folder.shared_root(app, repo / "models" / "a.onnx") is None
    assert folder.shared_root(app, app / "a.onnx") == app
    (repo / ".git").mkdir()
    assert folder.shared_root(app, repo / "models" / "a.onnx") == repo
    assert folder.shared_root(app, workspace / "other" / "a.onnx") is None
    (workspace / ".west").mkdir()
    assert folder.shared_root(app, workspace / "other" / "a.onnx") == workspace
    assert folder.relative(workspace / "other" / "a.onnx", app) == "../../other/a.onnx"


def test_cmake_gets_a_call_for_each_model(tmp_path: Path) -> None:
    path = tmp_path / "tinyml.yaml"
    path.write_text(
        'models:\n- {name: a, file: "x $]=].onnx", kernels: portable, shapes: {"i:0": 1x2}, '
        "budget: {ram: 1K}, arena_region: dtcm, weights: ram}\n"
    )
    base = tmp_path.as_posix()
    assert cmake.calls(path) == (
        f"zephyr_tinyml_model([=[a]=] [==[{base}/x $]=].onnx]==] [=[KERNELS]=] [=[portable]=] "
        "[=[SHAPES]=] [=[i:0=1x2]=] [=[BUDGET]=] [=[ram=1024]=] [=[ARENA_REGION]=] [=[dtcm]=] "
        "[=[WEIGHTS]=] [=[ram]=])\n"
    )


def test_cmake_gets_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tinyml.yaml").write_text("modles: []\n")
    assert cmake.main([str(tmp_path / "tinyml.yaml"), str(tmp_path / "out.cmake")]) == 1
    assert "did you mean 'models'?" in capsys.readouterr().out
    assert not (tmp_path / "out.cmake").exists()


def test_cmake_would_split_at_a_semicolon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tinyml.yaml").write_text("models: [{name: kws, file: 'a;b.onnx'}]\n")
    assert cmake.main([str(tmp_path / "tinyml.yaml"), str(tmp_path / "out.cmake")]) == 1
    assert "a;b.onnx' has a semicolon" in capsys.readouterr().out


def test_cmake_gets_the_names_of_missing_packages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(requirements.REQUIREMENTS, "no_such_package", "no-such-package>=1")
    assert cmake.main([str(tmp_path / "tinyml.yaml"), str(tmp_path / "out.cmake")]) == 1
    said = capsys.readouterr().out
    assert "does not have: no-such-package>=1" in said
    assert f"pip install {ROOT}" in said


def test_the_two_module_files_are_one() -> None:
    assert (ROOT / "module.yml").read_bytes() == (ROOT / "zephyr" / "module.yml").read_bytes()


ZEPHYR_3_7_KEYS = {"name", "build", "samples", "tests", "boards", "blobs", "security"}
"""What Zephyr 3.7 and 4.0 allow in module.yml. They refuse others, such as package-managers."""


def test_the_module_file() -> None:
    module = yaml.safe_load((ROOT / "module.yml").read_text())
    assert module["security"]["external-references"] == [f"pkg:pypi/west-tinyml@{__version__}"]
    prefixes = ROOT / module["build"]["settings"]["dts_root"] / "dts" / "bindings" / "vendor-prefixes.txt"
    named = [line for line in prefixes.read_text().splitlines() if line and not line.startswith("#")]
    assert [line.partition("\t")[0] for line in named] == ["tinyml"]
    (listed,) = module["package-managers"]["pip"]["requirement-files"]
    lines = (ROOT / listed).read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    assert packages == list(requirements.REQUIREMENTS.values()), "west packages pip installs what is needed"


def test_the_oldest_zephyr_gets_a_module_file_that_it_accepts() -> None:
    text = (ROOT / "module.yml").read_text()
    module, older = yaml.safe_load(text), yaml.safe_load(zephyr_descriptor.without_packages(text))
    assert set(older) <= ZEPHYR_3_7_KEYS
    assert older == {key: value for key, value in module.items() if key in ZEPHYR_3_7_KEYS}
    assert "#" not in zephyr_descriptor.without_packages(text).splitlines()[-1], "no comment on what is gone"
    accepts = {"3.7.0": False, "3.7.2": False, "4.0.0": False, "4.1.0": True, "4.3.1": True, "10.0.0": True}
    for version, accepted in accepts.items():
        assert zephyr_descriptor.is_refused(text, version) is not accepted
        assert not zephyr_descriptor.is_refused(zephyr_descriptor.without_packages(text), version)


def test_names_of_classes_reach_the_build_and_the_header(tmp_path: Path) -> None:
    """From the manifest through CMake's call to NAME_LABELS."""
    text = "models:\n  - name: digits\n    file: m.onnx\n    classes: [zero, one]\n"
    entry = manifest.parse(text, "tinyml.yaml").models[0]
    assert entry.classes == ("zero", "one")
    assert entry.as_yaml()["classes"] == ["zero", "one"]
    (tmp_path / "tinyml.yaml").write_text(text)
    assert "[=[CLASSES]=] [=[zero,one]=]" in cmake.calls(tmp_path / "tinyml.yaml")


@pytest.mark.parametrize(
    "classes,found",
    [
        ("zero", "must be a list of names"),
        ("[zero, true]", "True cannot be the name of a class"),
        ("[a, 'b,c']", "'b,c' cannot be the name of a class"),
        ("[a, a]", "names a class twice"),
    ],
)
def test_classes_that_are_no_names(classes: str, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        manifest.parse(f"models:\n  - {{name: m, file: m.onnx, classes: {classes}}}\n", "tinyml.yaml")
