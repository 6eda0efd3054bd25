# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""All settings of a model: those of ``Options``, and those that only builds of applications use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyml.settings.forms import Files, Label, Text
from tinyml.settings.options import of_options
from tinyml.settings.request_forms import Budget, Evaluate, Interface
from tinyml.settings.setting import CMAKE, COMMAND, PYTHON, YAML, Setting

Entry = Setting[Any, Any]

MODEL: tuple[Entry, ...] = (
    Setting(
        "",
        Text(),
        "C prefix of the model: a model called kws gives kws.h, kws_run(), kws_input()",
        name="name",
        places=(COMMAND, YAML, PYTHON),
        metavar="N",
        command="its prefix in C (default: the file's name)",
    ),
    Setting(
        "",
        Text(),
        "the model file (.onnx or .tflite), relative to tinyml.yaml",
        name="file",
        places=(YAML,),
    ),
)
"""What makes an entry of tinyml.yaml a model."""

BUILDS: tuple[Entry, ...] = (
    Setting(
        (),
        Files("my_kernel.c", c_only=True),
        "C files that the kernels of such operators call, relative to tinyml.yaml",
        name="sources",
        places=(YAML,),
        into="operators",
    ),
    Setting(
        {},
        Budget(),
        "upper limits, as `ram: 24K`, for arena, ram (arena and state) and flash (weights, tables, code); "
        "and for the instructions of any run, as `instructions: 2.5M`, on Cortex-M cores",
        name="budget",
        places=(YAML, CMAKE),
    ),
    Setting(
        {},
        Interface(),
        "types and shapes that the application relies on, as `input: int8[1,49,10,1]`: a model that "
        "differs fails the build",
        name="interface",
        places=(COMMAND, YAML, CMAKE),
        verbs=("compile",),
        metavar="NAME=TYPE[SHAPE]",
        command="fail if an input or output is not this, as input=int8[1,49,10,1] (repeatable)",
    ),
    Setting(
        None,
        Evaluate(),
        "a test set for `west tinyml test`, as `{data: test.npz, min_accuracy: 0.95}`: the test "
        "requires this accuracy on the board",
        name="evaluate",
        places=(YAML,),
    ),
    Setting(
        None,
        Label("a label of the devicetree", "dtcm"),
        "Zephyr: label of the zephyr,memory-region for the arena (default: chosen tinyml,arena)",
        name="arena_region",
        places=(YAML, CMAKE),
    ),
    Setting(
        None,
        Label("flash, ram or a label of the devicetree", "ram", "flash"),
        "Zephyr: where the weights go: flash (default), ram (copied there at boot, for speed), "
        "or the label of a zephyr,memory-region",
        name="weights",
        places=(YAML, CMAKE),
    ),
)
"""Settings of applications that do not determine the generated code."""


def settings(place: str = "") -> dict[str, Entry]:
    """All settings by name, or those that can be written in a place."""
    entries: Mapping[str, Entry] = {entry.name: entry for entry in MODEL}
    entries = {**entries, **of_options(), **{entry.name: entry for entry in BUILDS}}
    return {name: entry for name, entry in entries.items() if not place or place in entry.places}


def keys() -> dict[str, str]:
    """The keys of a model in tinyml.yaml, with their help."""
    return {name: entry.about for name, entry in settings(YAML).items()}
