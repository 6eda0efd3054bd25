# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of tinyml.yaml agrees with what the builds accept."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tinyml.base.errors import ConfigError
from tinyml.projects import manifest, yaml_text
from tinyml.settings import table
from tinyml.settings.schema import schema
from tinyml.settings.setting import YAML
from tinyml.verbs.cli import main

ROOT = Path(__file__).parents[2]
CHECK = jsonschema.Draft7Validator(schema())
START = "models:\n  - name: a\n    file: a.onnx\n"
MANIFESTS = sorted((ROOT / "samples").glob("*/tinyml.yaml"))

VALID = (
    "",
    "models:\n",
    "player: [conv, models/a.tflite]\n",
    START + "    kernels:\n",
    START + "    io: [rows, int8]\n    optimize: ram\n    npu: ethos-u55-128\n",
    START + "    budget: {ram: 24K, flash: 100000}\n    shapes: {x: 1x16x8, y: [1, 2]}\n",
    START + "    quantize: calib.npz\n    frontend: micro\n    outputs: [a, b]\n    classes: [left, right]\n",
    START + "    quantize: {calibration: c.npz, method: entropy}\n    frontend: {kind: mfcc}\n",
    START + "    operators: [mine.py]\n    sources: mine.c\n    interface: {input: 'int8[1,4]'}\n",
    START + "    evaluate: {data: test.npz, min_accuracy: 0.9}\n    arena_region: dtcm\n    weights: ram\n",
)

INVALID = (
    "- a\n",
    "model: []\n",
    "models: [a.onnx]\n",
    "models: [{name: a}]\n",
    "models: [{name: , file: a.onnx}]\n",
    START + "    kernel: auto\n",
    START + "    kernels: fast\n",
    START + "    optimize: sped\n",
    START + "    io: caller\n",
    START + "    npu: ethos\n",
    START + "    budget: {rom: 1K}\n",
    START + "    shapes: {x: 1x-1}\n",
    START + "    quantize: {method: minmax}\n",
    START + "    frontend: {kind: mcro}\n",
    START + "    evaluate: {data: test.npz}\n",
    START + "    arena_region: '&x'\n",
    START + "    classes: [a, a]\n",
)


@pytest.mark.parametrize("text", VALID)
def test_what_builds_accept_is_valid(text: str) -> None:
    manifest.parse(text, "x")
    document = yaml_text.read(text)
    assert document is None or not list(CHECK.iter_errors(document))


@pytest.mark.parametrize("text", INVALID)
def test_what_an_editor_can_know_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        manifest.parse(text, "x")
    assert list(CHECK.iter_errors(yaml_text.read(text)))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_samples_are_valid(path: Path) -> None:
    assert not list(CHECK.iter_errors(yaml_text.read(path.read_text())))


def test_defaults_of_front_ends_name_their_kind() -> None:
    models = schema()["properties"]["models"]["anyOf"][0]
    kinds = models["items"]["properties"]["frontend"]["anyOf"][0]["anyOf"][1]["properties"]
    assert kinds["log"]["description"] == (
        "of micro (default: true), mfcc (default: db), spectral (default: false)"
    )


def test_the_command_prints_every_key_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    models = json.loads(capsys.readouterr().out)["properties"]["models"]["anyOf"][0]
    properties = models["items"]["properties"]
    assert {name: found["description"] for name, found in properties.items()} == {
        name: entry.about for name, entry in table.settings(YAML).items()
    }
