# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The Zephyr image in which `verify` and `profile` run a model, with the memory layout of its application."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress
from tinyml.harness.zephyr import Build, DevicetreeError, Site, devicetree_options, write_application
from tinyml.ops.framework.maths import FULL_LIBC
from tinyml.pipeline import compile_model
from tinyml.projects import edit, files
from tinyml.projects.folder import Application
from tinyml.projects.manifest import ModelEntry
from tinyml.verbs.progress import Bars
from tinyml.verbs.settings import entry_settings, options_from

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_MEMORIES = (None, "flash", "ram")
"""Locations for weights that every board has."""


@dataclass(frozen=True)
class Image:
    """What to build, where: ``settings`` are lines of prj.conf, ``cmake`` the user's own options."""

    site: Site
    board: str
    settings: Sequence[str]
    cmake: Sequence[str]
    progress: Progress

    def make(self, folder: Path, entry: ModelEntry, application: Path | None = None) -> Build:
        """An image in ``folder``, with the devicetree overlays that ``application`` has for the board."""
        app = folder / "app"
        write_application(app, entry, self.settings)
        build = Build(self.site, self.board, app, folder / "build", entry.name, self.progress)
        overlays = devicetree_options(app, application) if application else []
        build.make([*overlays, *self.cmake])
        return build


def build_image(
    args: argparse.Namespace,
    listed: tuple[Application, ModelEntry] | None,
    site: Site,
    folder: Path,
    profiled: bool,
    console: Console,
) -> Build:
    """``listed``: the application and its entry, if the model was given by its name there."""
    here = compile_model(args.model, options_from(args, "host"))
    settings = [FULL_LIBC] if here.summary["libm"] else []
    if profiled:
        settings += ["CONFIG_TINYML_PROFILING=y", f"CONFIG_TINYML_PROFILING_LAYERS={len(here.selected)}"]
    entry = ModelEntry(here.name, str(args.model), **entry_settings(args))
    with Bars() as bars:
        image = Image(site, args.board, settings, args.cmake, bars.advance)
        build = _make(image, entry, listed, folder, console)
    floats = sum(chosen.in_float for chosen in here.selected)
    config = files.read_text(build.folder / "zephyr" / ".config")
    warning = fpu_warning(config, files.read_text(listed[0].prj_conf_path) if listed else "", floats)
    if warning:
        console.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    return build


def _make(
    image: Image,
    entry: ModelEntry,
    listed: tuple[Application, ModelEntry] | None,
    folder: Path,
    console: Console,
) -> Build:
    if listed is None:
        return image.make(folder, entry)
    application, wanted = listed
    try:
        placed = entry.having(arena_region=wanted.arena_region, weights=entry.weights or wanted.weights)
        return image.make(folder, placed, application.root)
    except DevicetreeError as error:
        # The regions belong to the application's own board; an emulator may have only RAM and flash.
        weights = wanted.weights if wanted.weights in PLAIN_MEMORIES else None
        build = image.make(folder / "plain", entry.having(weights=weights))
        console.print(
            f"{image.board} lacks what the application's devicetree or tinyml.yaml requires ({error.what}): "
            "arena and weights are in the board's own RAM and flash",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
        return build


def fpu_warning(config: str, prj_conf: str, floats: int) -> str:
    """``config``: the image's; ``prj_conf``: the application's; ``floats``: layers that compute in float."""
    if not floats or "CONFIG_CPU_HAS_FPU=y" not in config.splitlines():
        return ""
    if "CONFIG_FPU=y" not in config.splitlines():
        return f"{floats} layers compute in float, and CONFIG_FPU is off: they take about ten times as long"
    if edit.is_off(prj_conf, "CONFIG_FPU"):
        return (
            f"{floats} layers compute in float. This image has CONFIG_FPU=y, the application's prj.conf "
            "turns it off: there they take about ten times as long"
        )
    return ""
