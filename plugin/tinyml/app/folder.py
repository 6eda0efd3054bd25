# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finding the application that a command is about, and where its model files may lie."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tinyml.app import manifest
from tinyml.app.manifest import ModelEntry
from tinyml.errors import ConfigError


@dataclass(frozen=True)
class Application:
    """A Zephyr application: a folder whose CMakeLists.txt finds Zephyr."""

    root: Path

    @property
    def manifest_path(self) -> Path:
        return self.root / manifest.FILE_NAME

    @property
    def prj_conf_path(self) -> Path:
        return self.root / "prj.conf"

    def manifest(self) -> manifest.Manifest:
        return manifest.load(self.manifest_path)

    def model(self, name: str) -> ModelEntry:
        """The model of that name, which has to be there."""
        listed = self.manifest()
        entry = listed.find(name)
        if entry is None:
            names = ", ".join(model.name for model in listed.models)
            raise ConfigError(
                f"{self.root} has no model called {name!r}",
                f"one of: {names}" if names else "add one with `west tinyml add MODEL`",
            )
        return entry


def find_application(given: Path | None, start: Path) -> Application:
    """The application in ``given``, or else the one that ``start`` lies in."""
    if given is not None:
        reason = _not_an_application(given)
        if reason:
            raise ConfigError(
                f"{given} is not a Zephyr application: {reason}",
                "the folder of the application's CMakeLists.txt, the one that `west build` is given",
            )
        return Application(given.resolve())
    for folder in (start.resolve(), *start.resolve().parents):
        if _not_an_application(folder) is None:
            return Application(folder)
    if (start / "platformio.ini").is_file():
        raise ConfigError(
            f"{start} is a PlatformIO project, where `pio run` finds models by itself",
            "put the model into models/, and this project into lib_deps; docs/platformio.md tells more",
        )
    raise ConfigError(
        f"{start} is not inside a Zephyr application: neither it nor a folder above has a CMakeLists.txt "
        "with find_package(Zephyr ...)",
        "change into the application's folder, or name it with --app DIR",
    )


def _not_an_application(folder: Path) -> str | None:
    """Why this is not an application, or None if it is one."""
    if not folder.exists():
        return "there is no such folder"
    if not folder.is_dir():
        return "it is not a folder"
    lists = folder / "CMakeLists.txt"
    if not lists.is_file():
        return "it has no CMakeLists.txt"
    if not re.search(
        r"(?im)^\s*find_package\s*\(\s*Zephyr\b", lists.read_text(encoding="utf-8", errors="replace")
    ):
        return "its CMakeLists.txt does not say find_package(Zephyr ...)"
    return None


def shared_root(app: Path, model: Path) -> Path | None:
    """The folder that travels with both the application and the model, if there is one.

    That is the application itself, its git repository, or its west workspace: a relative path
    inside it still holds after a clone or on a colleague's machine.
    """
    for folder in (app, *app.parents):
        anchored = folder == app or (folder / ".git").exists() or (folder / ".west").is_dir()
        if anchored and model.is_relative_to(folder):
            return folder
    return None


def relative(model: Path, app: Path) -> str:
    """``model`` as seen from ``app``, with ``/``."""
    return Path(os.path.relpath(model, app)).as_posix()
