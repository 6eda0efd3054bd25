# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The application around a model: a copy of ``c/zephyr`` with a tinyml.yaml."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tinyml.projects import edit
from tinyml.projects.manifest import FILE_NAME, ModelEntry

SOURCES = Path(__file__).parents[1] / "c" / "zephyr"


def write_application(folder: Path, entry: ModelEntry, settings: Sequence[str]) -> None:
    """Paths in ``entry`` are relative to the current folder; ``settings`` are more lines of prj.conf."""
    for source in (path for path in SOURCES.rglob("*") if path.is_file()):
        place = folder / source.relative_to(SOURCES)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
    with (folder / "prj.conf").open("a", encoding="utf-8") as config:
        config.writelines(f"{setting}\n" for setting in settings)
    moved = entry.relocated(_seen_from(folder, entry.file), lambda file: _seen_from(folder, file))
    (folder / FILE_NAME).write_text(edit.add_model("", moved), encoding="utf-8")


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
