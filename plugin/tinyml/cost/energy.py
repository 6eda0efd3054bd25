# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Energy of a run: cycles times the published energy of a cycle, for chips that have such a figure."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Energy:
    """One run on a chip, in microjoules: a range, because the figures are one."""

    chip: str  # whose figures were published
    mhz: int  # its clock
    least_microjoules: float  # of one run
    most_microjoules: float  # of one run
    source: str  # where the figures are from

    def __str__(self) -> str:
        return f"{_three_digits(self.least_microjoules)} to {_three_digits(self.most_microjoules)}"

    def per_run(self) -> str:
        """What the range is, in words."""
        return f"microjoules per run on an {self.chip} at {self.mhz} MHz"

    def unit(self) -> str:
        """The same with its source."""
        return f"{self.per_run()} ({self.source})"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{float(f'{value:.3g}'):,.0f}"


@dataclass(frozen=True)
class Chip:
    """A chip whose energy was published, in picojoules per cycle."""

    name: str
    core: str
    mhz: int
    picojoules: tuple[float, float]
    source: str


@cache
def chips() -> tuple[Chip, ...]:
    """All chips with a published figure: ``energy.yaml``."""
    entries = yaml.safe_load((Path(__file__).parent / "energy.yaml").read_text(encoding="utf-8"))["chips"]
    return tuple(Chip(**{**entry, "picojoules": tuple(entry["picojoules"])}) for entry in entries)


def energies(core: str, cycles: int | None, chip: str = "") -> tuple[Energy, ...]:
    """What a run of so many cycles takes: on one chip, or on all with a core; nothing without a figure."""
    if cycles is None:
        return ()
    return tuple(
        Energy(
            known.name,
            known.mhz,
            cycles * known.picojoules[0] / 1e6,
            cycles * known.picojoules[1] / 1e6,
            known.source,
        )
        for known in chips()
        if known.core == core and chip in ("", known.name)
    )
