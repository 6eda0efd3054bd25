# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The application's manifest, ``tinyml.yaml``: which models belong to the firmware, and how they are built.

It is deliberately small (``settings/`` has all of its keys):

    models:
      - name: kws             # C prefix: kws.h, kws_run(), kws_input() ...
        file: models/kws.onnx # relative to the manifest
        kernels: portable     # optional: auto, cmsis-nn or portable
        optimize: ram         # optional: balanced, speed, size or ram
        shapes:               # optional: inputs whose dimensions the model leaves open
          audio: 1x16x8
        bounds:               # optional: the most results of nodes whose number depends on data
          NonMaxSuppression_5: 100
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
    player: all               # optional: which kernels the firmware has for models that are data
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tinyml.base import limits
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import check_name, check_unique
from tinyml.projects import yaml_text
from tinyml.settings import table
from tinyml.settings.options import Options
from tinyml.settings.quantize_request import Request
from tinyml.settings.setting import YAML
from tinyml.settings.written import UnknownKeyError, is_c, kind, refuse_unknown, relative_path

FILE_NAME = "tinyml.yaml"


@dataclass(frozen=True, init=False)
class ModelEntry:
    """One model of an application. ``file`` is relative to the manifest and uses ``/``.

    Its settings are attributes: ``entry.kernels`` is the checked value, or an empty one of its type if the
    manifest does not have the key. Paths in them are relative to the manifest.
    """

    name: str
    file: str
    given: Mapping[str, Any]  # the settings that the manifest has

    def __init__(self, name: str, file: str, **settings: Any) -> None:
        for key in settings:
            if key not in table.settings(YAML):
                raise TypeError(f"a model has no setting {key!r}")
        given = {key: value for key, value in settings.items() if value}
        for key, value in (("name", name), ("file", file), ("given", given)):
            object.__setattr__(self, key, value)

    def __getattr__(self, key: str) -> Any:
        setting = table.settings(YAML).get(key)
        if setting is None:
            raise AttributeError(f"a model has no setting {key!r}")
        return self.given.get(key, setting.form.empty)

    def having(self, *, file: str = "", **settings: Any) -> ModelEntry:
        """The entry with other settings; an empty value removes one."""
        return ModelEntry(self.name, file or self.file, **{**self.given, **settings})

    def relocated(self, file: str, to: Callable[[str], str]) -> ModelEntry:
        """The entry in another manifest: its own file, and other paths for the files of its settings."""
        known = table.settings()
        moved = {key: known[key].form.relocated(value, to) for key, value in self.given.items()}
        return ModelEntry(self.name, file, **moved)

    def path(self, folder: Path) -> Path:
        return folder / self.file

    def other_files(self) -> tuple[str, ...]:
        """What the build reads beside the model, relative to the manifest."""
        calibration = self.quantize.get("calibration")
        return (*self.operators, *([calibration] if calibration else []))

    def request(self, folder: Path) -> Request | None:
        """How to quantise the model; None if it is not quantised."""
        return self.options(folder).quantize

    def options(self, folder: Path, **others: Any) -> Options:
        """The compiler's options for this model; ``folder`` has the manifest."""
        known = table.settings()
        values = {key: known[key].form.option(value, folder) for key, value in self.given.items()}
        determining = {key: value for key, value in values.items() if hasattr(Options, key)}
        return Options(**{"name": self.name, **determining, **others})

    def as_yaml(self) -> dict[str, Any]:
        """This entry as it is written in the manifest."""
        written: dict[str, Any] = {"name": self.name, "file": self.file}
        for key, setting in table.settings(YAML).items():
            own = self.given.get(setting.into or key)
            if own and setting.into:
                own = tuple(file for file in own if is_c(file))
            elif own and any(other.into == key for other in table.settings(YAML).values()):
                own = tuple(file for file in own if not is_c(file))
            if own:
                written[key] = setting.form.yaml(own)
        return written


@dataclass(frozen=True)
class Manifest:
    """A manifest that has been read and checked."""

    models: tuple[ModelEntry, ...] = ()
    player: tuple[str, ...] = ()  # kernels for models that are data: groups, model files, `all`

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
        raise ConfigError(f"{where} must be a mapping with the key 'models', found {kind(document)}")
    place = _Place(text, where)
    with place.at():
        refuse_unknown(document, ("models", "player"), where)
    with place.at("player"):
        player = _player(document["player"], where) if "player" in document else ()
    listed = document.get("models")
    if listed is None:
        return Manifest(player=player)
    with place.at("models"):
        if not isinstance(listed, list):
            raise ConfigError(
                f"{where}: 'models' must be a list, found {kind(listed)}",
                "- name: kws\n         file: kws.onnx",
            )
    models = tuple(_entry(item, place, index) for index, item in enumerate(listed))
    try:
        for model in models:
            check_name(model.name)
        check_unique(model.name for model in models)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", f"`name:` in {FILE_NAME}: {error.hint}") from None
    return Manifest(models, player)


@dataclass(frozen=True)
class _Place:
    """A manifest's text and its name, from which errors get their line and column."""

    text: str
    where: str

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Wraps the reading of what ``path`` leads to: its errors begin with ``tinyml.yaml:4:5``."""
        try:
            yield
        except ConfigError as error:
            inner = (error.key,) if isinstance(error, UnknownKeyError) else ()
            found = yaml_text.position(self.text, (*path, *inner))
            if found and error.message.startswith(f"{self.where}: "):
                rest = error.message.removeprefix(self.where)
                error.message = f"{self.where}:{found[0]}:{found[1]}{rest}"
            raise


def _player(value: object, where: str) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if words is None or words == []:  # which would not mean no kernels, but all
        raise ConfigError(
            f"{where}: 'player' names no kernels",
            "player: all, or a list of groups of kernels and of files of models and packs; without the key, "
            "CONFIG_TINYML_PLAYER_KERNELS decides",
        )
    advice = "player: all, or a list of groups of kernels and of files of models and packs"
    if not isinstance(words, list):
        message = f"{where}: 'player' must be a word or a list of words, found {kind(value)}"
        raise ConfigError(message, advice)
    for word in words:
        if not isinstance(word, str) or not word:
            found = repr(word) if isinstance(word, str | int | float) else kind(word)
            raise ConfigError(f"{where}: 'player' is a list of words, and {found} is none", advice)
    return tuple(words)


def _with_caret(error: yaml.YAMLError) -> str:
    """What is wrong, the line and, under it, a caret at the place."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or problem is None:
        return " ".join(str(error).split())
    snippet = mark.get_snippet(indent=4) or ""
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" + (f"\n{snippet}" if snippet else "")


def _entry(item: object, place: _Place, index: int) -> ModelEntry:
    where, path = f"{place.where}: model {index + 1}", ("models", index)
    known = table.settings(YAML)
    with place.at(*path):
        if not isinstance(item, dict):
            raise ConfigError(f"{where} must be a mapping with 'name' and 'file', found {kind(item)}")
        refuse_unknown(item, tuple(known), where)
    for key in ("name", "file"):
        with place.at(*path, key):
            if not isinstance(item.get(key), str) or not item[key]:
                found = kind(item[key]) if item.get(key, "") != "" else "nothing"
                raise ConfigError(f"{where}: {key!r} must be a string, found {found}", known[key].about)
    given: dict[str, Any] = {}
    for key, setting in known.items():
        if key in ("name", "file") or item.get(key) is None:
            continue
        with place.at(*path, key):
            value = setting.form.read(item[key], where)
            setting.form.check_project(value, where)
        joined = setting.into or key
        given[joined] = (*given.get(joined, ()), *value) if setting.into else value
    with place.at(*path, "file"):
        return ModelEntry(item["name"], relative_path(item["file"], where), **given)
