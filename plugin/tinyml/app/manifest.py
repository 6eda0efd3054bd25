# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The application's manifest, ``tinyml.yaml``: which models belong to the firmware, and how they are built.

It is deliberately small (``keys.KEYS`` lists all of it):

    models:
      - name: kws             # C prefix: kws.h, kws_run(), kws_input() ...
        file: models/kws.onnx # relative to the manifest
        kernels: portable     # optional: auto, cmsis-nn or portable
        optimize: ram         # optional: balanced, speed, size or ram
        shapes:               # optional: inputs whose dimensions the model leaves open
          audio: 1x16x8
        budget:               # optional: more than this is an error
          ram: 24K
          flash: 100K
        interface:            # optional: what the application relies on
          input: int8[1,49,10,1]
        classes: [left, right] # optional: names for KWS_LABELS in the header
        quantize:             # optional: make a float model int8 in the build
          calibration: data/calib.npz
        evaluate:             # optional: `west tinyml test` writes a test of the accuracy on the board
          data: data/test.npz
          min_accuracy: 0.95
        npu: ethos-u55-128    # optional: an Arm Ethos-U computes what it can of an int8 model
        frontend:             # optional: kws_feed() takes samples and computes the features
          kind: micro
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tinyml import limits, pinned
from tinyml.app import evaluation, keys, yaml_text
from tinyml.errors import ConfigError
from tinyml.goals import find_goal
from tinyml.naming import check_name, check_unique
from tinyml.quantize import request

if TYPE_CHECKING:
    from tinyml.features.settings import FrontEnd

FILE_NAME = "tinyml.yaml"


@dataclass(frozen=True)
class ModelEntry:
    """One model of an application. ``file`` is relative to the manifest and uses ``/``."""

    name: str
    file: str
    kernels: str | None = None
    shapes: Mapping[str, str] = field(default_factory=dict)
    budget: Mapping[str, int] = field(default_factory=dict)  # bytes, by kind
    arena_region: str | None = None
    quantize: Mapping[str, str] = field(default_factory=dict)  # settings; paths relative to the manifest
    weights: str | None = None  # flash, ram or a label of the devicetree
    frontend: FrontEnd | None = None
    interface: Mapping[str, pinned.Kind] = field(default_factory=dict)
    operators: tuple[str, ...] = ()  # and ``sources``; relative to the manifest, with ``/``
    classes: tuple[str, ...] = ()
    evaluate: evaluation.Evaluate | None = None  # paths relative to the manifest
    optimize: str | None = None  # a key of goals.GOALS
    io: str | None = None  # one of keys.IO
    npu: str = ""

    def pipeline_io(self) -> str:
        """The choice of inputs and outputs as the pipeline names it."""
        return self.io or "arena"

    def path(self, folder: Path) -> Path:
        return folder / self.file

    def other_files(self) -> tuple[str, ...]:
        """What the build reads beside the model, relative to the manifest."""
        calibration = self.quantize.get("calibration")
        return (*self.operators, *([calibration] if calibration else []))

    def request(self, folder: Path) -> request.Request | None:
        """How to quantise the model; None if it is not quantised."""
        return request.from_settings(self.quantize, folder) if self.quantize else None

    def as_yaml(self) -> dict[str, Any]:
        """This entry as it is written in the manifest."""
        written: dict[str, Any] = {"name": self.name, "file": self.file}
        if self.kernels is not None:
            written["kernels"] = self.kernels
        if self.optimize is not None:
            written["optimize"] = self.optimize
        if self.io is not None:
            written["io"] = self.io
        if self.shapes:
            written["shapes"] = dict(self.shapes)
        if self.budget:
            written["budget"] = dict(self.budget)
        if self.interface:
            written["interface"] = {name: str(kind) for name, kind in self.interface.items()}
        if self.classes:
            written["classes"] = list(self.classes)
        if self.arena_region is not None:
            written["arena_region"] = self.arena_region
        if self.weights is not None:
            written["weights"] = self.weights
        if self.quantize:
            written["quantize"] = dict(self.quantize)
        if self.evaluate:
            written["evaluate"] = dict(self.evaluate.given)
        if self.frontend:
            written["frontend"] = dict(self.frontend.given)
        for key, wanted in (("operators", False), ("sources", True)):
            if files := [file for file in self.operators if keys.is_c(file) == wanted]:
                written[key] = files
        if self.npu:
            written["npu"] = self.npu
        return written


@dataclass(frozen=True)
class Manifest:
    """A manifest that has been read and checked."""

    models: tuple[ModelEntry, ...] = ()

    def find(self, name: str) -> ModelEntry | None:
        return next((model for model in self.models if model.name == name), None)


def load(path: Path) -> Manifest:
    """Read and check a manifest; one that does not exist has no models."""
    try:
        if path.stat().st_size > limits.limit("yaml_bytes"):
            raise ConfigError(f"{path} is larger than {limits.limit('yaml_bytes'):,} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Manifest()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Manifest:
    """The manifest in ``text``; ``where`` names it in messages."""
    try:
        document = yaml_text.read(text)
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply", "a list of models, each a mapping") from None
    except ValueError as error:  # such as a number of 5,000 digits
        raise ConfigError(f"{where} has a value that cannot be read: {error}") from None
    except yaml_text.RepeatedKeyError as error:
        raise ConfigError(f"{where}: {_with_caret(error)}", "keep one of the two") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not YAML: {_with_caret(error)}") from None
    if document is None:
        return Manifest()
    if not isinstance(document, dict):
        raise ConfigError(f"{where} must be a mapping with the key 'models', found {keys.kind(document)}")
    keys.refuse_unknown(document, ("models",), where)
    listed = document.get("models")
    if listed is None:
        return Manifest()
    if not isinstance(listed, list):
        raise ConfigError(
            f"{where}: 'models' must be a list, found {keys.kind(listed)}",
            "- name: kws\n         file: kws.onnx",
        )
    models = tuple(_entry(item, f"{where}: model {index}") for index, item in enumerate(listed, 1))
    try:
        for model in models:
            check_name(model.name)
        check_unique(model.name for model in models)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", f"`name:` in {FILE_NAME}: {error.hint}") from None
    return Manifest(models)


def _with_caret(error: yaml.YAMLError) -> str:
    """What is wrong, the line and, under it, a caret at the place."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or problem is None:
        return " ".join(str(error).split())
    snippet = mark.get_snippet(indent=4) or ""
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" + (f"\n{snippet}" if snippet else "")


def _entry(item: object, where: str) -> ModelEntry:
    if not isinstance(item, dict):
        raise ConfigError(f"{where} must be a mapping with 'name' and 'file', found {keys.kind(item)}")
    keys.refuse_unknown(item, tuple(keys.KEYS), where)
    for key in ("name", "file"):
        if not isinstance(item.get(key), str) or not item[key]:
            found = keys.kind(item[key]) if item.get(key, "") != "" else "nothing"
            raise ConfigError(f"{where}: {key!r} must be a string, found {found}", keys.KEYS[key])
    kernels = item.get("kernels")
    if kernels is not None and kernels not in keys.KERNELS:
        raise ConfigError(f"{where}: unknown kernels {kernels!r}", f"one of: {', '.join(keys.KERNELS)}")
    return ModelEntry(
        item["name"],
        keys.relative_path(item["file"], where),
        kernels,
        keys.checked_shapes(item.get("shapes"), where),
        keys.budget(item.get("budget"), where),
        keys.label(item, "arena_region", "a label of the devicetree", "dtcm", where),
        keys.quantize(item.get("quantize"), where),
        keys.label(item, "weights", "flash, ram or a label of the devicetree", "ram", where),
        keys.frontend(item.get("frontend"), where),
        pinned.from_mapping(item.get("interface"), where),
        (*keys.relative_paths(item.get("operators"), where), *keys.sources(item.get("sources"), where)),
        keys.classes(item.get("classes"), where),
        keys.evaluate(item.get("evaluate"), where),
        find_goal(str(item["optimize"]), where).name if item.get("optimize") is not None else None,
        keys.io(item.get("io"), where),
        keys.npu(item.get("npu"), where),
    )
