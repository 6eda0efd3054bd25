# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The application around a model: a copy of ``c/zephyr`` with a tinyml.yaml."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tinyml.base.whole_files import write_whole
from tinyml.projects import edit
from tinyml.projects.manifest import FILE_NAME, ModelEntry

SOURCES = Path(__file__).parents[1] / "c" / "zephyr"


def write_application(folder: Path, entry: ModelEntry, settings: Sequence[str]) -> None:
    """Paths in ``entry`` are relative to the current folder; ``settings`` are more lines of prj.conf.

    Files that are as they should be are left alone: CMake would run again for new ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = (path for path in SOURCES.rglob("*") if path.is_file())
    files = {path.relative_to(SOURCES).as_posix(): path.read_bytes() for path in sources}
    files["prj.conf"] += "".join(f"{setting}\n" for setting in settings).encode()
    moved = entry.relocated(_seen_from(folder, entry.file), lambda file: _seen_from(folder, file))
    files[FILE_NAME] = edit.add_model("", moved).encode()
    for name, content in files.items():
        place = folder / name
        if not place.is_file() or place.read_bytes() != content:
            write_whole(place, content)


def devicetree_options(folder: Path, application: Path) -> list[str]:
    """CMake options that give the application in ``folder`` the overlays of another application.

    Zephyr then searches the other application for board overlays, as in its own build.
    """
    if not any(next(application.glob(f"{place}*.overlay"), None) for place in ("", "boards/", "socs/")):
        return []  # so that a kept build works however the model is given
    options = [f"-DAPPLICATION_CONFIG_DIR={application.as_posix()}"]
    options += [f"-DCONF_FILE={(folder / 'prj.conf').as_posix()}"]  # not the other application's
    if (application / "dts").is_dir():
        options.append(f"-DDTS_ROOT={application.as_posix()}")
    return options


def _seen_from(folder: Path, path: str) -> str:
    return Path(os.path.relpath(Path(path).resolve(), folder.resolve())).as_posix()
