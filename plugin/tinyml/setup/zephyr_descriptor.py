# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The descriptor of the Zephyr module, and the form of it that Zephyr 3.7 and 4.0 accept.

Those versions refuse a descriptor with keys that they do not know, `package-managers` among them; later ones
need that key for `west packages pip`. No file suits both, so there are two, made from one.

Standard library only: setup.py and tools.release load this module where nothing is installed.
"""

from __future__ import annotations

import re
from pathlib import Path

FILE = Path("zephyr", "module.yml")
FIRST_WITH_PACKAGES = (4, 1)
"""The first Zephyr that accepts `package-managers`."""
TAG_SUFFIX = "-zephyr-3.7"
"""After the tag of a release, the revision for older versions of Zephyr."""

_PACKAGES = re.compile(r"(?m)(?:^#.*\n)*^package-managers:.*\n(?:^[ \t]+.*\n?)*")


def has_packages(descriptor: str) -> bool:
    """Whether Zephyr 3.7 and 4.0 refuse this descriptor."""
    return _PACKAGES.search(descriptor) is not None


def without_packages(descriptor: str) -> str:
    """The same for all versions of Zephyr, without `west packages pip`."""
    return _PACKAGES.sub("", descriptor)


def is_refused(descriptor: str, zephyr_version: str) -> bool:
    """Whether a version of Zephyr, such as 3.7.0, refuses this descriptor."""
    numbers = re.match(r"(\d+)\.(\d+)", zephyr_version)
    if numbers is None:
        return False
    return has_packages(descriptor) and (int(numbers[1]), int(numbers[2])) < FIRST_WITH_PACKAGES


def revision_for_old_zephyr(version: str) -> str:
    """The tag of a release of ours, such as 0.1.0, that Zephyr 3.7 and 4.0 accept."""
    return f"v{version}{TAG_SUFFIX}"
