# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The page of a bundle, which a reviewer reads from top to bottom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyml.api.evidence.deviations import DEVIATIONS
from tinyml.base.templates import render
from tinyml.bounds import NOT_SHOWN


def page(
    links: Mapping[str, Any],
    versions: Mapping[str, str],
    models: Sequence[Mapping[str, Any]],
    problems: Sequence[str],
) -> str:
    return render(
        "api/evidence",
        "evidence.md.j2",
        {
            "chain": links,
            "versions": versions,
            "models": models,
            "problems": problems,
            "deviations": DEVIATIONS,
            "not_shown": NOT_SHOWN,
        },
    )
