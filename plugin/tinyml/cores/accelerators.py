# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The accelerators by name, and the memory system that Vela assumes for each."""

from __future__ import annotations

from tinyml.base.errors import ConfigError, did_you_mean

_SYSTEMS = {
    "ethos-u55": "Ethos_U55_High_End_Embedded",
    "ethos-u65": "Ethos_U65_Embedded",
    "ethos-u85": "Ethos_U85_SYS_Flash_Low",
}
_MACS = {
    "ethos-u55": (32, 64, 128, 256),
    "ethos-u65": (256, 512),
    "ethos-u85": (128, 256, 512, 1024, 2048),
}

ACCELERATORS: tuple[str, ...] = tuple(f"{family}-{macs}" for family, sizes in _MACS.items() for macs in sizes)
"""What `npu:` and `--npu` accept: the product and its multiply-accumulates per cycle."""


LISTED = f"one of {', '.join(ACCELERATORS)}"


def unknown(name: object) -> str:
    """The message for a name that is not an accelerator's."""
    return f"there is no accelerator {name!r}{did_you_mean(str(name), ACCELERATORS)}"


def check(name: str) -> str:
    """The name of an accelerator, or an error that lists them."""
    if name not in ACCELERATORS:
        raise ConfigError(unknown(name), LISTED)
    return name


def system(name: str) -> str:
    """The system in Vela's configuration that its estimates are for."""
    return _SYSTEMS[name.rpartition("-")[0]]
