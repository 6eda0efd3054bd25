# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The four tiers of tests, and whether each can run here.

The folder of a test is its tier. A tier whose tools are missing is skipped and reported by name with the
reason; ``TINYML_REQUIRE_TIERS=host,zephyr`` makes that a failure.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools import workspace

TESTS = Path(__file__).resolve().parent
REQUIRE = "TINYML_REQUIRE_TIERS"


@dataclass(frozen=True)
class Tier:
    """``missing`` returns the reason why the tier cannot run, or None."""

    name: str
    missing: Callable[[], str | None]
    one_worker: bool = False  # its tests share build folders: keep the tests of a file on one worker


def _programs(*names: str) -> str | None:
    absent = [name for name in names if shutil.which(name) is None]
    return f"no {', '.join(absent)}; see `tinyml doctor`" if absent else None


def _modules(*names: str) -> str | None:
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return f"no Python package {', '.join(absent)}; see `tinyml doctor`" if absent else None


def _host() -> str | None:
    return _modules("onnxruntime", "sklearn") or _programs("gcc")


def _standalone() -> str | None:
    return _programs("arm-none-eabi-gcc", "qemu-system-arm") or _modules("pytest_embedded")


def _zephyr() -> str | None:
    tools = _programs("west", "cmake", "ninja", "dtc", "arm-none-eabi-gcc", "qemu-system-arm")
    return tools or workspace.why_not(workspace.location())


def _platformio() -> str | None:
    return _modules("platformio", "SCons") or _programs("gcc", "arm-none-eabi-gcc", "qemu-system-arm")


TIERS = (
    Tier("host", _host),
    Tier("standalone", _standalone),
    Tier("zephyr", _zephyr, one_worker=True),
    Tier("platformio", _platformio, one_worker=True),
)
NAMES = tuple(tier.name for tier in TIERS)


@cache
def reason_missing(tier: Tier) -> str | None:
    return tier.missing()


@cache
def tier_of(path: Path) -> Tier | None:
    """The tier of a test file: the folder of ``tests`` that it lies in."""
    try:
        folder = path.resolve().relative_to(TESTS).parts[0]
    except (ValueError, IndexError):
        return None
    return next((tier for tier in TIERS if tier.name == folder), None)


def required(value: str | None = None) -> tuple[str, ...]:
    """The tiers that must run, as the environment says."""
    text = os.environ.get(REQUIRE, "") if value is None else value
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"{REQUIRE} names {', '.join(unknown)}; the tiers are {', '.join(NAMES)}")
    return names


@dataclass
class Count:
    """How the tests of one tier ended."""

    ran: int = 0
    skipped: int = 0

    def words(self, reason: str | None) -> str:
        if reason is not None:
            return f"skipped {self.skipped} ({reason})" if self.skipped else f"skipped ({reason})"
        return f"ran {self.ran}" + (f" (and skipped {self.skipped})" if self.skipped else "")


def summary(counts: dict[str, Count], reasons: dict[str, str | None]) -> str:
    """The last line of a test run."""
    parts = [f"{name} {counts.get(name, Count()).words(reasons[name])}" for name in NAMES]
    return "tiers: " + ", ".join(parts)


def complaints(names: Sequence[str], counts: dict[str, Count], reasons: dict[str, str | None]) -> list[str]:
    """Messages about required tiers that did not run."""
    found = []
    for name in names:
        if reason := reasons[name]:
            found.append(f"{REQUIRE} requires the tier {name}, which cannot run here: {reason}")
        elif counts.get(name, Count()).ran == 0:
            found.append(f"{REQUIRE} requires the tier {name}, of which no test ran")
    return found
