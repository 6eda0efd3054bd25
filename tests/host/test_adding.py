# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`add` promises that the build will work: with the settings it keeps and the files it copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tinyml.base.errors import ConfigError, ModelError
from tinyml.pipeline import Options, compile_model
from tinyml.settings import quantize_request
from tinyml.verbs.cli import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("find_package(Zephyr REQUIRED)\n")
    for name in ("model.onnx", "model_float.onnx"):
        (folder / name).write_bytes((DIGITS / name).read_bytes())
    return folder


def test_replace_checks_the_model_with_the_settings_that_it_keeps(
    app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    samples = np.random.default_rng(1).random((20, 1, 8, 8), dtype=np.float32)
    np.savez(app / "calib.npz", image=samples)
    words = ["add", str(app / "model_float.onnx"), "--app", str(app), "--name", "digits"]
    assert main([*words, "--quantize", str(app / "calib.npz")]) == 0
    assert "int8:" in capsys.readouterr().out
    assert main([*words, "--replace"]) == 0
    assert "int8:" in capsys.readouterr().out
    before = (app / "tinyml.yaml").read_bytes()
    words[1] = str(app / "model.onnx")
    assert main([*words, "--replace"]) == 1
    said = capsys.readouterr().err
    assert "is quantised already" in said
    assert "tinyml.yaml has `quantize:` for digits, which --replace keeps" in said
    assert (app / "tinyml.yaml").read_bytes() == before


def test_data_in_other_files_is_not_left_behind(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "downloads"
    outside.mkdir()
    model = onnx.load(DIGITS / "model_float.onnx")
    onnx.save(model, outside / "kws.onnx", save_as_external_data=True, location="kws.bin", size_threshold=0)
    assert main(["add", str(outside / "kws.onnx"), "--app", str(app)]) == 0
    assert (app / "models" / "kws.onnx").read_bytes() == (outside / "kws.onnx").read_bytes()
    assert (app / "models" / "kws.bin").read_bytes() == (outside / "kws.bin").read_bytes()
    assert main(["remove", "kws", "--app", str(app)]) == 0
    (app / "models" / "kws.onnx").unlink()
    (app / "models" / "kws.bin").write_bytes(b"the weights of another model")
    capsys.readouterr()
    assert main(["add", str(outside / "kws.onnx"), "--app", str(app)]) == 1
    assert "kws.bin holds weights of kws.onnx and would be copied" in capsys.readouterr().err
    assert not (app / "tinyml.yaml").exists()


def with_weights_beside(file: Path, factor: float) -> None:
    """The same graph, byte by byte, whatever the factor: the weights are in weights.bin."""
    model = onnx.load(DIGITS / "model_float.onnx")
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype == np.float32:
            tensor.CopyFrom(onnx.numpy_helper.from_array(values * np.float32(factor), tensor.name))
    file.parent.mkdir(exist_ok=True)
    (file.parent / "weights.bin").unlink(missing_ok=True)
    onnx.save(model, file, save_as_external_data=True, location="weights.bin", size_threshold=0)


@pytest.mark.parametrize("location", ["", ".", "a" * 300])
def test_weights_that_are_in_no_file(location: str, tmp_path: Path) -> None:
    """The message names the tensor, not the folder of the model as a model."""
    with_weights_beside(tmp_path / "net.onnx", 1)
    model = onnx.load(tmp_path / "net.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    message = "cannot read" if len(location) > 1 else "which is a folder, not a file"
    with pytest.raises(ModelError, match=message):
        compile_model(tmp_path / "net.onnx", Options("m", "host"))


def test_the_same_graph_with_other_weights_beside_it(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first" / "net.onnx", tmp_path / "second" / "net.onnx"
    for file, factor in ((first, 1), (second, 2)):
        with_weights_beside(file, factor)
    assert first.read_bytes() == second.read_bytes()
    weights = app / "models" / "weights.bin"
    words = ["--app", str(app)]
    assert main(["add", str(first), *words]) == 0
    before = (app / "tinyml.yaml").read_bytes()
    capsys.readouterr()
    assert main(["add", str(second), "--name", "other", *words]) == 1
    assert "weights.bin holds weights of net.onnx and would be copied" in capsys.readouterr().err
    assert weights.read_bytes() == (first.parent / "weights.bin").read_bytes()
    assert (app / "tinyml.yaml").read_bytes() == before
    assert main(["add", str(second), "--replace", *words]) == 0, "its own weights may be overwritten"
    assert weights.read_bytes() == (second.parent / "weights.bin").read_bytes()


def test_replace_leaves_weights_that_another_model_reads(app: Path, tmp_path: Path) -> None:
    for place, factor in ((app / "models", 1), (tmp_path / "downloads", 2)):
        with_weights_beside(place / "one.onnx", factor)
    (app / "models" / "two.onnx").write_bytes((app / "models" / "one.onnx").read_bytes())
    words = ["--app", str(app)]
    for name in ("one", "two"):
        assert main(["add", str(app / "models" / f"{name}.onnx"), *words]) == 0
    before = (app / "models" / "weights.bin").read_bytes()
    assert main(["add", str(tmp_path / "downloads" / "one.onnx"), "--replace", *words]) == 1
    assert (app / "models" / "weights.bin").read_bytes() == before


def test_replace_keeps_the_entry_where_it_is_and_as_it_is_written(app: Path, tmp_path: Path) -> None:
    outside = tmp_path / "downloads" / "kws.onnx"
    outside.parent.mkdir()
    outside.write_bytes((DIGITS / "model_float.onnx").read_bytes())
    (app / "models").mkdir()
    (app / "models" / "kws.onnx").write_bytes((DIGITS / "model.onnx").read_bytes())
    text = "models:\n  - name: kws # hears\n    file: ./models/kws.onnx # ours\n"
    text += "  - name: z\n    file: model.onnx\n"
    (app / "tinyml.yaml").write_text(text)
    words = ["add", str(outside), "--replace", "--app", str(app)]
    assert main(words) == 0
    assert (app / "tinyml.yaml").read_text() == text
    assert (app / "models" / "kws.onnx").read_bytes() == outside.read_bytes()
    assert main([*words, "--optimize", "ram"]) == 0
    after = text.replace("# ours\n", "# ours\n    optimize: ram\n")
    assert (app / "tinyml.yaml").read_text() == after


def test_replace_mends_a_damaged_model(app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = tmp_path / "downloads" / "kws.onnx"
    outside.parent.mkdir()
    outside.write_bytes((DIGITS / "model.onnx").read_bytes())
    words = ["add", str(outside), "--app", str(app)]
    assert main(words) == 0
    (app / "models" / "kws.onnx").write_bytes(b"half a download")
    assert main([*words, "--replace"]) == 0
    assert "changed: the model before does not compile: " in capsys.readouterr().out
    assert (app / "models" / "kws.onnx").read_bytes() == outside.read_bytes()


def test_calibration_files_of_the_same_name(app: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    data = {}
    for seed, place in enumerate(("first", "second", "third")):
        data[place] = tmp_path / place / "data.npz"
        data[place].parent.mkdir()
        samples = np.random.default_rng(seed).random((20, 1, 8, 8), dtype=np.float32)
        np.savez(data[place], image=samples, label=np.arange(20) % 10)
    words = ["add", str(app / "model_float.onnx"), "--app", str(app)]
    assert main([*words, "--name", "one", "--quantize", str(data["first"])]) == 0
    chosen = ["--quantize", str(data["second"]), "--quantize", f"test={data['third']}"]
    assert main([*words, "--name", "two", *chosen]) == 0
    models = app / "models"
    assert (models / "data.npz").read_bytes() == data["first"].read_bytes()
    assert (models / "two_calibration.npz").read_bytes() == data["second"].read_bytes()
    assert (models / "two_test.npz").read_bytes() == data["third"].read_bytes()
    text = (app / "tinyml.yaml").read_text()
    assert "calibration: models/two_calibration.npz" in text
    assert "test: models/two_test.npz" in text
    data["first"].write_bytes(data["third"].read_bytes())
    assert main([*words, "--name", "one", "--replace", "--quantize", str(data["first"])]) == 0
    assert (models / "data.npz").read_bytes() == data["third"].read_bytes(), "no other model reads it"


def test_a_second_file_of_the_same_name_is_called_like_its_model(app: Path, tmp_path: Path) -> None:
    """Many files are called model.onnx."""
    files = [tmp_path / place / "net.onnx" for place in ("first", "second")]
    for file, source in zip(files, ("model.onnx", "model_float.onnx"), strict=True):
        file.parent.mkdir()
        file.write_bytes((DIGITS / source).read_bytes())
    words = ["--app", str(app)]
    assert main(["add", str(files[0]), "--name", "one", *words]) == 0
    assert main(["add", str(files[1]), "--name", "two", *words]) == 0
    assert (app / "models" / "net.onnx").read_bytes() == files[0].read_bytes()
    assert (app / "models" / "two.onnx").read_bytes() == files[1].read_bytes()
    assert "file: models/two.onnx" in (app / "tinyml.yaml").read_text()


def test_replace_overwrites_the_file_of_the_model_that_it_replaces(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "downloads" / "kws.onnx"
    outside.parent.mkdir()
    outside.write_bytes((DIGITS / "model.onnx").read_bytes())
    words = ["--app", str(app)]
    assert main(["add", str(outside), *words]) == 0
    outside.write_bytes((DIGITS / "model_float.onnx").read_bytes())
    assert main(["add", str(outside), "--replace", *words]) == 0
    assert (app / "models" / "kws.onnx").read_bytes() == outside.read_bytes()
    outside.write_bytes((DIGITS / "model.onnx").read_bytes())
    assert main(["add", str(outside), "--name", "kws_again", *words]) == 0, "under a place of its own"
    (app / "models" / "other.onnx").write_bytes(b"a file that no model uses")
    capsys.readouterr()
    assert main(["add", str(outside), "--name", "other", *words]) == 1
    assert "would be copied to models/kws.onnx or models/other.onnx" in capsys.readouterr().err


def test_a_name_that_cmake_would_split(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (app / "a;b.onnx").write_bytes((app / "model.onnx").read_bytes())
    assert main(["add", str(app / "a;b.onnx"), "--app", str(app)]) == 1
    assert "has a semicolon" in capsys.readouterr().err
    assert not (app / "tinyml.yaml").exists()


def test_a_model_that_is_to_be_copied_and_is_none(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kws.onnx").write_text("no model")
    assert main(["add", str(tmp_path / "kws.onnx"), "--app", str(app)]) == 1
    assert f"error: {tmp_path / 'kws.onnx'} is not a model" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0:inf", "-inf:0", "nan:1"])
def test_ranges_are_finite(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a range"):
        quantize_request.parse_range(text)


@pytest.mark.parametrize("text", ["inf", "0.5,nan"])
def test_means_and_deviations_are_finite(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a list of numbers"):
        quantize_request.parse_numbers(text, "std")


def test_replace_warns_of_a_budget_and_of_a_file_that_nothing_uses(
    app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "models:\n  - name: digits\n    file: model.onnx\n    budget:\n      ram: 600\n"
    (app / "tinyml.yaml").write_text(text)
    words = ["add", str(app / "model_float.onnx"), "--name", "digits", "--replace", "--app", str(app)]
    assert main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no model uses model.onnx any more" in said
    assert "warning: the build will fail: digits: arena and state need" in said
    assert "the budget of digits allows 600" in said
    assert "a larger budget (the budget of digits)" in said
    (app / "tinyml.yaml").write_text(text.replace("600", "60K"))
    assert main(words) == 0
    assert "warning" not in capsys.readouterr().out
