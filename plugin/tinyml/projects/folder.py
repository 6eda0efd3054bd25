# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Find the application that a command works on, and where its model files may be."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.projects import manifest
from tinyml.projects.manifest import ModelEntry


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
        """The model of that name; an error if there is none."""
        listed = self.manifest()
        entry = listed.find(name)
        if entry is None:
            names = ", ".join(model.name for model in listed.models)
            raise ConfigError(
                f"{self.root} has no model called {name!r}",
                f"one of: {names}" if names else "add one with `west tinyml add MODEL`",
            )
        return entry


def application_of_build(build: Path) -> Application:
    """The application that a build folder was configured for."""
    cache = build / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8", errors="replace") if cache.is_file() else ""
    found = re.search(r"^APPLICATION_SOURCE_DIR:PATH=(.+)$", text, re.MULTILINE)
    if found is None:
        raise ConfigError(f"{build} names no application", "the folder that `west build` made")
    return find_application(Path(found[1]), build)


def find_application(given: Path | None, start: Path) -> Application:
    """The application in ``given``, or else the one that contains ``start``."""
    if given is not None:
        reason = _not_an_application(given)
        if reason:
            raise ConfigError(
                f"{given} is not a Zephyr application: {reason}",
                "the folder with the application's CMakeLists.txt, which you pass to `west build`",
            )
        return Application(given.resolve())
    for folder in (start.resolve(), *start.resolve().parents):
        if _not_an_application(folder) is None:
            return Application(folder)
    if (start / "platformio.ini").is_file():
        raise ConfigError(
            f"{start} is a PlatformIO project, where `pio run` discovers models automatically",
            "put the model into models/ and west-tinyml into lib_deps; see docs/platformio.md",
        )
    raise ConfigError(
        f"{start} is not inside a Zephyr application: neither it nor a folder above has a CMakeLists.txt "
        "with find_package(Zephyr ...)",
        "change into the application's folder, or name it with --app DIR",
    )


def _not_an_application(folder: Path) -> str | None:
    """Why this is not an application, or None if it is one."""
    if not folder.exists():
        return "the folder does not exist"
    if not folder.is_dir():
        return "it is not a folder"
    lists = folder / "CMakeLists.txt"
    if not lists.is_file():
        return "it has no CMakeLists.txt"
    if not re.search(
        r"(?im)^\s*find_package\s*\(\s*Zephyr\b", lists.read_text(encoding="utf-8", errors="replace")
    ):
        return "its CMakeLists.txt does not call find_package(Zephyr ...)"
    return None


def shared_root(app: Path, model: Path) -> Path | None:
    """The common root of the application and the model, if they are shared together.

    That is the application itself, its git repository, or its west workspace: a relative path
    inside it stays valid after a clone or on another machine.
    """
    for folder in (app, *app.parents):
        anchored = folder == app or (folder / ".git").exists() or (folder / ".west").is_dir()
        if anchored and model.is_relative_to(folder):
            return folder
    return None


def relative(model: Path, app: Path) -> str:
    """The path of ``model`` relative to ``app``, with ``/``."""
    return Path(os.path.relpath(model, app)).as_posix()
