# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which build a verb works on when the command line names none: the one in ``build``, as for west."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import ConfigError

DEFAULT = Path("build")


def build_in_place_of(model: Path | None, otherwise: str) -> Path | None:
    """The default folder if no model is given either and it has an image; ``otherwise`` is what to try."""
    if model is not None:
        return None
    if any(DEFAULT.glob(pattern) for pattern in ("zephyr/zephyr.elf", "*/zephyr/zephyr.elf")):
        return DEFAULT
    raise ConfigError("which model? There is no build in ./build either", otherwise)
