# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Find a CMSIS-NN in a PlatformIO project that is compatible with the generated code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.setup.workspace import CMSIS_NN_MARK

VERSION_MARK = Path("Source", "FullyConnectedFunctions", "arm_fully_connected_per_channel_s8.c")
"""A file that was added in version 7, the first compatible with the generated code."""


def choose(named: Path | None, found: Iterable[Path]) -> Path | None:
    """The folder that the project names, which must be usable; otherwise the first usable one found."""
    if named is not None:
        if not (named / CMSIS_NN_MARK).is_file():
            raise ConfigError(
                f"custom_tinyml_cmsis_nn: there is no {CMSIS_NN_MARK.as_posix()} in {named}",
                "the folder of a checkout of https://github.com/ARM-software/CMSIS-NN",
            )
        if not _new_enough(named):
            raise ConfigError(
                f"custom_tinyml_cmsis_nn: CMSIS-NN in {named} is older than version 7",
                "version 7.0.0 or later, or leave the option out to use the portable kernels",
            )
        return named
    return next(filter(_new_enough, found), None)


def outdated(found: Iterable[Path]) -> Path | None:
    """A CMSIS-NN that is present but too old, for a message."""
    return next((path for path in found if (path / CMSIS_NN_MARK).is_file() and not _new_enough(path)), None)


def _new_enough(folder: Path) -> bool:
    return (folder / CMSIS_NN_MARK).is_file() and (folder / VERSION_MARK).is_file()
