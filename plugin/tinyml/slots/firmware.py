# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The part of a firmware that plays models: the table of its kernels, and the sources that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyml.base.errors import ConfigError, writing
from tinyml.base.naming import MODEL_SUFFIXES
from tinyml.base.whole_files import write_whole
from tinyml.cores.targets import Target, find_target
from tinyml.harness.program_build import RUNTIME_C
from tinyml.pipeline import Options
from tinyml.player.choice import chosen
from tinyml.player.playable import Playable
from tinyml.player.table import sources, table
from tinyml.slots.container import SUFFIX
from tinyml.slots.data_pack import played
from tinyml.slots.data_reading import check_layouts, read_data
from tinyml.slots.families import family_of
from tinyml.slots.playing import image_for
from tinyml.slots.version import Version

TABLE = "tinyml_play_kernels.c"
SOURCES = "sources.txt"


def kernels_of_firmware(words: Sequence[str], target: str, folder: Path) -> list[Playable]:
    """``words``: all, groups of kernels, models and packs whose kernels are wanted, in ``folder``."""
    core = find_target(target)
    groups, needed = list[str](), set[Playable]()
    for word in words:
        if word.endswith(MODEL_SUFFIXES):
            needed.update(played(folder / word, Options(), family_of(core), Version(0)).image.kernels)
        elif word.endswith(SUFFIX):
            needed.update(_kernels_of_pack(folder / word, core))
        else:
            groups.append(word)
    return chosen(core, groups, needed)


def _kernels_of_pack(path: Path, core: Target) -> tuple[Playable, ...]:
    """Those that the image for a core calls."""
    _, content = image_for(path, core)
    model = read_data(content)
    check_layouts(model)  # kernels of this version could not play an older pack
    return model.kernels


def write_firmware(kernels: Sequence[Playable], folder: Path, copy: bool = False) -> list[Path]:
    """The table and the list of sources; with ``copy`` also the sources and headers themselves."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"cannot write to {folder}: it is not a folder", "choose another folder with -o")
    written = {TABLE: table(kernels), SOURCES: "".join(f"{name}\n" for name in sources(kernels))}
    if copy:
        files = [RUNTIME_C / name for name in sources(kernels)]
        files += [*RUNTIME_C.rglob("*.h")]
        written |= {path.relative_to(RUNTIME_C).as_posix(): path.read_text("utf-8") for path in files}
    paths = []
    for name, text in written.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:  # what did not change is not compiled again
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, text.encode())
        paths.append(path)
    return paths
