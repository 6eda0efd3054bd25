# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of tinyml.yaml agrees with what the builds accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tinyml.base.errors import ConfigError
from tinyml.features.key_help import HELP
from tinyml.features.kinds import KINDS
from tinyml.features.settings import keys_of
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
    START + "    quantize: {calibration: c.npz, method: , keep_float: [a, b], samples: 20, auto: 0.5}\n",
    START + "    budget: {arena: ' 24 KiB ', ram: 0, instructions: 2500000.0}\n    adapt: last\n",
    START + "    adapt: {kind: prototypes, distance: cosine, classes: 4}\n",
    START + "    frontend: {kind: micro, pcan: false, step_ms: 10, stride: 2, input: model}\n",
    START + "    frontend: {kind: spectral, statistics: [rms, peak], bands: '0,50', axes: 3}\n",
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
    START + "    budget: {ram: much}\n",
    START + "    budget: {ram: -1}\n",
    START + "    budget: {instructions: 2.5G}\n",
    START + "    shapes: {x: 1x-1}\n",
    START + "    quantize: {method: minmax}\n",
    START + "    quantize: {calibration: c.npz, method: best}\n",
    START + "    quantize: {calibration: c.npz, core: m4}\n",
    START + "    quantize: [c.npz]\n",
    START + "    adapt: {kind: last, loss: small}\n",
    START + "    frontend: {kind: micro, input: both}\n",
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


def properties() -> dict[str, Any]:
    found: dict[str, Any] = schema()["properties"]["models"]["items"]["properties"]
    return found


def test_every_key_of_a_front_end_says_what_it_is_and_of_which_kinds() -> None:
    keys = properties()["frontend"]["anyOf"][1]["properties"]
    assert keys["log"]["description"] == (
        "logarithm of the bands; in mfcc: db (decibels) or natural. "
        "Of micro (default: true), mfcc (default: db), spectral (default: false)"
    )
    assert set(HELP) == {key for kind in KINDS for key in keys_of(kind)}


def test_editors_know_the_type_of_every_value() -> None:
    """Without one, they complete a key without its colon."""

    def check(found: dict[str, Any], path: str) -> None:
        assert "type" in found or "anyOf" in found, path
        for form in found.get("anyOf", [found]):
            for key, inner in form.get("properties", {}).items():
                assert inner["description"], f"{path}.{key}"
                check(inner, f"{path}.{key}")

    for key, found in properties().items():
        check(found, key)


def test_the_command_prints_every_key_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    described = {name: found["description"] for name, found in properties().items()}
    assert described.keys() == table.settings(YAML).keys()
    assert described["kernels"] == table.settings(YAML)["kernels"].about
    assert "](" not in "".join(described.values()), "links of the site lead nowhere in an editor"
    assert "see docs/detectors.md" in described["bounds"]
