# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO build compiles the kernels that its models call, and compiles no model twice to know them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tinyml import pipeline
from tinyml.projects.platformio import called_kernels as kernels
from tinyml.projects.platformio.model_files import RUNTIME
from tinyml.projects.platformio.project import Model
from tinyml.settings.options import Options

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


def digits(folder: Path, optimize: str = "balanced") -> Model:
    path = folder / "digits.onnx"
    if not path.exists():
        shutil.copy(DIGITS, path)
    return Model("digits", path, Options(name="digits", target="cortex-m3", optimize=optimize))


def names(paths: list[Path]) -> set[str]:
    return {path.relative_to(RUNTIME).as_posix() for path in paths}


def test_the_kernels_of_a_model_and_what_applications_call(tmp_path: Path) -> None:
    model = digits(tmp_path)
    found = names(kernels.sources([model], "compiler", tmp_path / "build"))
    called = set(pipeline.compile_model(model.path, model.options).summary["sources"]["runtime"])
    assert called <= found
    assert {name.split("/")[0] for name in found - called} == set(kernels.SERVICES)
    assert len(found) < len(kernels.every_source()) / 3


def test_a_model_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    compile_model = pipeline.compile_model

    def counted(*arguments: object) -> pipeline.Compiled:
        nonlocal count
        count += 1
        return compile_model(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "compile_model", counted)
    monkeypatch.setattr(kernels, "_compiled", {})
    build = tmp_path / "build"
    first = kernels.sources([digits(tmp_path)], "compiler", build)
    kernels.compile_once(digits(tmp_path), "compiler")
    assert count == 1, "the command writes what the scripts have compiled"
    assert kernels.sources([digits(tmp_path)], "compiler", build) == first
    assert count == 1, "the build knows the kernels of a model that has not changed"
    kernels.sources([digits(tmp_path)], "another compiler", build)
    kernels.sources([digits(tmp_path, optimize="ram")], "compiler", build)
    assert count == 3
    with (tmp_path / "digits.onnx").open("ab") as file:
        file.write(b"\x32\x03new")  # ModelProto.doc_string
    kernels.sources([digits(tmp_path)], "compiler", build)
    assert count == 4


def test_a_list_of_kernels_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that is interrupted leaves no part of a list behind, and one that is damaged is replaced."""
    model, build = digits(tmp_path), tmp_path / "build"
    first = kernels.sources([model], "compiler", build)
    record = build / "digits.kernels"
    record.write_bytes(b"\xff\xfe\x00")
    assert kernels.sources([model], "compiler", build) == first
    record.unlink()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kernels.sources([model], "compiler", build)
    assert [path.name for path in build.iterdir()] == []
    assert kernels.sources([model], "compiler", build) == first


def test_a_broken_model_is_left_to_the_command(tmp_path: Path) -> None:
    (tmp_path / "digits.onnx").write_bytes(b"this is not a model")
    found = names(kernels.sources([digits(tmp_path)], "compiler", tmp_path / "build"))
    assert {name.split("/")[0] for name in found} == set(kernels.SERVICES)


def test_the_player_brings_its_kernels(tmp_path: Path) -> None:
    played = kernels.write_player(["dense"], "cortex-m3", tmp_path, tmp_path)
    assert (tmp_path / "player" / "tinyml_play_kernels.c").is_file()
    found = names(kernels.sources([], "compiler", tmp_path, played))
    assert {"player/player.c", "player/slot_player.c", "player/play_dense_s8.c"} <= found
    assert "player/play_trees.c" not in found
    assert kernels.write_player([], "cortex-m3", tmp_path, tmp_path) == []
