# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Deviations from MISRA C:2012 in the runtime and in generated C, each with its reason.

`python -m tools.misra` checks that there are no others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """A rule that the code does not follow, and why."""

    rule: str
    category: str  # required or advisory
    what: str
    reason: str


DEVIATIONS: tuple[Deviation, ...] = ()
