# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Locations outside this package: the cache folder, the west workspace, CMSIS-NN."""

from __future__ import annotations

import os
from pathlib import Path

from tinyml.base.cache_folder import cache_folder as cache_folder
from tinyml.base.errors import ConfigError, ToolError

CMSIS_NN_MARK = Path("Include", "arm_nnfunctions.h")
"""The file by which a CMSIS-NN folder is recognised."""


def _workspaces() -> list[Path]:
    """West workspaces to search, the most specific first; those in our cache only if there is no other."""
    found = [Path(os.environ["TINYML_WORKSPACE"])] if os.environ.get("TINYML_WORKSPACE") else []
    if zephyr := os.environ.get("ZEPHYR_BASE"):
        found.append(Path(zephyr).parent)
    here = Path.cwd()
    found += [folder for folder in (here, *here.parents) if (folder / ".west").is_dir()]
    cached = [path for path in cache_folder().glob("workspace-*") if not _orphaned(path)]
    return found or sorted(cached, key=lambda path: path.stat().st_mtime, reverse=True)


def _orphaned(workspace: Path) -> bool:
    """Whether the clone that a cached workspace belongs to is gone: west finds no manifest there."""
    clone = workspace / "west-tinyml"
    return clone.is_symlink() and not clone.exists()


def find_zephyr() -> Path | None:
    """The Zephyr tree: $ZEPHYR_BASE, or that of a west workspace; None where there is none."""
    named = os.environ.get("ZEPHYR_BASE")
    candidates = [Path(named)] if named else [workspace / "zephyr" for workspace in _workspaces()]
    return next((path for path in candidates if (path / "VERSION").is_file()), None)


def find_cmsis_nn() -> Path | None:
    """The CMSIS-NN sources: $TINYML_CMSIS_NN, or those of a west workspace; None where there are none."""
    if named := os.environ.get("TINYML_CMSIS_NN"):
        if not (Path(named) / CMSIS_NN_MARK).is_file():
            raise ConfigError(
                f"TINYML_CMSIS_NN names {named}, which has no {CMSIS_NN_MARK.as_posix()}",
                "point it at a checkout of https://github.com/ARM-software/CMSIS-NN, or unset it",
            )
        return Path(named)
    candidates = (workspace / "modules" / "lib" / "cmsis-nn" for workspace in _workspaces())
    return next((path for path in candidates if (path / CMSIS_NN_MARK).is_file()), None)


def require_cmsis_nn() -> Path:
    """The CMSIS-NN sources, for a model that was compiled to use them."""
    found = find_cmsis_nn()
    if found is None:
        raise ToolError(
            "the model uses CMSIS-NN, which was not found in $TINYML_CMSIS_NN, $TINYML_WORKSPACE, "
            "next to $ZEPHYR_BASE or in our cache folder",
            "set TINYML_CMSIS_NN to a checkout of https://github.com/ARM-software/CMSIS-NN, "
            "or compile with --kernels portable",
        )
    return found
