# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Versions of packs, in MCUboot's form. A device refuses one that is not newer than what it has."""

from __future__ import annotations

import re

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

_FORM = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:\+(\d+))?")
_LIMITS = (2**8 - 1, 2**8 - 1, 2**16 - 1, 2**32 - 1)


@dataclass(frozen=True, order=True)
class Version:
    """Compared from left to right, all four parts."""

    major: int
    minor: int = 0
    revision: int = 0
    build: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.revision}" + (f"+{self.build}" if self.build else "")


def parse_version(text: str) -> Version:
    """``2``, ``2.1``, ``2.1.7`` or ``2.1.7+30``."""
    found = _FORM.fullmatch(text)
    parts = [int(part or 0) for part in found.groups()] if found else []
    if not parts or any(part > limit for part, limit in zip(parts, _LIMITS, strict=True)):
        raise ConfigError(
            f"{text!r} is not a version", "MAJOR[.MINOR[.REVISION]][+BUILD], at most 255.255.65535+4294967295"
        )
    return Version(*parts)
