# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Evidence about a model in an image: complete, the same every time, and wrong inputs are found."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tinyml import harness
from tinyml.api.evidence import Bundle, differences, make, read_bundle
from tinyml.base.errors import ConfigError, ToolError
from tinyml.harness.generated import read_generated
from tinyml.pipeline import Options, compile_model
from tinyml.verbs.cli import main
from tinyml.verbs.evidence import sources

pytest.importorskip("cyclonedx")

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples/digits/model.onnx"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a west build for a Cortex-M4, without Zephyr."""
    folder = tmp_path_factory.mktemp("build")
    generated = folder / "tinyml" / "digits"
    for place in (generated, folder / "zephyr"):
        place.mkdir(parents=True)
    for name, text in compile_model(DIGITS, Options("digits", "cortex-m4")).files.items():
        (generated / name).write_text(text)
    words = ("script", str(generated), "digits", "compile", str(DIGITS), "-o", str(generated))
    (generated / "digits.command").write_text(";".join((*words, "--name", "digits", "--target", "cortex-m4")))
    machine = harness.find_machine("qemu-cortex-m4")
    image = harness.build(read_generated(generated), machine, folder, harness.Options(lines=True))
    image.path.rename(folder / "zephyr" / "zephyr.elf")
    return folder


@pytest.fixture(scope="module")
def bundle(build: Path) -> Bundle:
    return make(sources(build), build, 1)


def test_a_bundle_is_complete(bundle: Bundle, build: Path) -> None:
    assert bundle.problems == ()
    chain = json.loads(bundle.files["chain.json"])
    assert (
        chain["models"][0]["files"][0]["sha256"] == json.loads(bundle.files["digits/report.json"])["sha256"]
    )
    results = json.loads(bundle.files["digits/goldens.json"])
    assert (results["numpy"]["agrees"], results["reference"]["agrees"]) == (True, True)
    assert results["layers"] == {"agree": True, "compared": 8, "problem": ""}
    assert json.loads(bundle.files["digits/bounds.json"])["instructions"] > 100_000
    output = np.load(io.BytesIO(bundle.files["digits/goldens/0_output_0.npy"]))
    assert output.shape == (1, 10)
    assert all(entry["cases"]["computer"] + entry["cases"]["cores"] > 0 for entry in kernels(bundle))
    assert not re.search(r"certif|qualif", bundle.files["README.md"].decode(), re.IGNORECASE)
    for name, content in bundle.files.items():
        assert str(build).encode() not in content, name
        assert str(ROOT).encode() not in content, name


def kernels(bundle: Bundle) -> list[dict[str, dict[str, int]]]:
    found: list[dict[str, dict[str, int]]] = json.loads(bundle.files["digits/kernels.json"])
    return found


def test_the_bill_has_the_parts_of_the_image(bundle: Bundle) -> None:
    bill = json.loads(bundle.files["sbom.json"])
    assert bill["specVersion"] == "1.5"
    assert "timestamp" not in bill["metadata"]
    parts = {part["name"]: part for part in bill["components"]}
    assert parts["model.onnx"]["type"] == "machine-learning-model"
    assert {"digits.c", "digits.h", "digits_weights.h"} < set(parts)


def test_a_check_finds_what_changed(bundle: Bundle, build: Path, tmp_path: Path) -> None:
    """The same build gives the same bytes; another image is named."""
    path = tmp_path / "evidence.zip"
    path.write_bytes(bundle.content)
    assert read_bundle(path).content == bundle.content
    assert main(["evidence", "-d", str(build), "--check", str(path)]) == 0
    with zipfile.ZipFile(path) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    changed = Bundle({**bundle.files, "tools.json": b"{}\n", "more": b"\xff"})
    assert differences(bundle, changed) == ["more: new", "tools.json: line 1 was '{', is '{}'"]
    assert differences(changed, bundle)[0] == "more: no longer there"


@pytest.mark.parametrize("file", ["digits.c", "digits_weights.h"])
def test_c_that_was_edited_has_no_evidence(file: str, build: Path, tmp_path: Path) -> None:
    """An offset moved by hand, a weight changed: the C is no longer that of the model."""
    copy = tmp_path / "build"
    shutil.copytree(build, copy)
    source = copy / "tinyml" / "digits" / file
    text = source.read_text()
    source.write_text(re.sub(r"(\d)(?=\D*$)", lambda digit: str((int(digit[1]) + 1) % 10), text, count=1))
    assert source.read_text() != text
    with pytest.raises(
        ConfigError, match=f"{file} in the build is not what this version makes of model.onnx"
    ):
        make(sources(copy), copy, 1)


def test_mistakes_are_explained(build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.zip").write_text("no zip file")
    with pytest.raises(ConfigError, match="is not a zip file"):
        read_bundle(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("evidence.json", "{}" * 100)
    whole = (tmp_path / "whole.zip").read_bytes()
    for damaged in (whole[:-30], whole.replace(b"{}{}", b"{}[]", 1)):
        (tmp_path / "damaged.zip").write_bytes(damaged)
        with pytest.raises(ConfigError, match="is a damaged zip file, or one cut short"):
            read_bundle(tmp_path / "damaged.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ConfigError, match="the file has no evidence"):
        _ = read_bundle(tmp_path / "other.zip").samples
    copy = tmp_path / "build"
    shutil.copytree(build, copy)
    (copy / "tinyml" / "digits" / "digits.command").unlink()
    with pytest.raises(ConfigError, match="does not say how digits was compiled"):
        sources(copy)
    monkeypatch.setitem(__import__("sys").modules, "cyclonedx.model", None)
    with pytest.raises(ToolError, match="requires cyclonedx-python-lib"):
        __import__("tinyml.api.evidence.bill", fromlist=["bill"]).bill({}, {})
