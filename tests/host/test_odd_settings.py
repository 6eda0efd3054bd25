# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every setting of a model with every kind of odd value: refused in words, or the same in every place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import tinyml
from tinyml.base.errors import ConfigError, TinymlError
from tinyml.projects import cmake
from tinyml.projects.manifest import ModelEntry, parse
from tinyml.settings import table
from tinyml.settings.setting import COMMAND, YAML
from tinyml.settings.written import as_number

WORDS = (
    *("", " ", "a", "a,b", "a=b", "a;b", "a b", "é", "IO", "CLASSES", "none", "no", "yes", "\n", "a\nb", "#"),
    *("0", "1", "-1", "1.5", "1e3", "0x10", "010", "1x2", "1x", "x1", "x", "1_000", "\uff11", "nan", "inf"),
    *("int8", "rows,int8", "int8,rows", "arena", "caller", "size", "micro", "ethos-u55-128", "ram=24K"),
    *("kind=micro", "input=int8[1,2]", "calibration=x.npz", "x.npz", "'", '"', "$x", "${x}", "[[", "]=]"),
    *("\\", "/abs", "../up", "C:\\x", "~", "*"),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        1.5,
        float("nan"),
        float("inf"),
        10**30,
        [],
        {},
        [[]],
        [{}],
        [None],
        [True],
    ),
    *([1], [1, 1], ["a", "a"], ["a,b"], ["a", "b"], {"a": None}, {"a": [1, 2]}, {"a": []}, {"a": {"b": 1}}),
    *(
        {1: 2},
        {None: 1},
        {True: 1},
        {"ram": "24K"},
        {"ram": 24.0},
        {"ram": True},
        {"arena": 0},
        {"ram": None},
    ),
    *({"input": "int8[1,2]"}, {"input": "int8[]"}, {"input": ["int8"]}, {"input=x": "int8[1]"}),
    *(
        {"calibration": "x.npz", key: value}
        for key, value in (("samples", 5), ("samples", True), ("auto", 0.5))
    ),
    *({"calibration": "x.npz", key: value} for key, value in (("range", "0:1"), ("mean", [0.5, 1]))),
    *({"calibration": value} for value in (1, ["x"], "x.npz")),
    *({"kind": "micro", "rate": rate} for rate in (16000, "x", None)),
    *({"kind": kind} for kind in ("micro", 1, ["micro"])),
    *({"data": "t.npz", "min_accuracy": least} for least in (0.9, "95%", True, [1], 0, 2)),
)
ODD = (
    *VALUES,
    *WORDS,
    *([word] for word in WORDS),
    *({"a": word} for word in WORDS),
    *({word: 1} for word in WORDS),
)


def read(entry: dict[str, Any]) -> ModelEntry:
    text = yaml.safe_dump({"models": [entry]}, allow_unicode=True)
    return parse(text, "tinyml.yaml").models[0]


WITH: dict[str, dict[str, Any]] = {
    "watch_data": {"watch": True},
    "watch_channels": {"watch": True, "watch_data": "typical.npz"},
}
"""Settings that others require."""


@pytest.mark.parametrize("key", [key for key in table.settings(YAML) if key not in ("name", "file")])
def test_odd_values(key: str, tmp_path: Path) -> None:
    accepted = 0
    for value in ODD:
        try:
            entry = read({"name": "m", "file": "m.onnx", key: value, **WITH.get(key, {})})
        except TinymlError:
            continue
        accepted += 1
        assert read(entry.as_yaml()).given == entry.given, value
        entry.options(tmp_path)
        for name, given in entry.given.items():
            setting = table.settings()[name]
            if COMMAND in setting.places:
                assert setting.form.parse(setting.form.words(given), "words") == given, value
    assert 0 < accepted < len(ODD)


def test_an_output_with_the_name_of_an_argument(tmp_path: Path) -> None:
    """CMake would take it for the argument."""
    manifest = tmp_path / "tinyml.yaml"
    manifest.write_text("models: [{name: m, file: m.onnx, outputs: [CLASSES], classes: [IO]}]\n")
    assert "[=[OUTPUTS]=] [=[ CLASSES]=] [=[CLASSES]=] [=[ IO]=]" in cmake.calls(manifest)
    for name in ("outputs", "classes"):
        assert table.settings()[name].form.parse([" CLASSES"], "") == ("CLASSES",)


def test_numbers_are_written_as_numbers() -> None:
    entry = read(
        {"name": "m", "file": "m.onnx", "quantize": {"calibration": "x.npz", "samples": 100, "auto": 0.5}}
    )
    assert entry.as_yaml()["quantize"] == {"calibration": "x.npz", "samples": 100, "auto": 0.5}
    front = read({"name": "m", "file": "m.onnx", "frontend": {"kind": "micro", "rate": 16000}})
    assert front.as_yaml()["frontend"] == {"kind": "micro", "rate": 16000}
    for text in ("30dB", "1e3", "010", "1_0", "nan", "inf", "0:1", ""):
        assert as_number(text) == text


def test_a_text_is_no_list_of_classes() -> None:
    with pytest.raises(ConfigError, match="classes is the text 'abc'"):
        tinyml.compile("model.onnx", classes="abc")
