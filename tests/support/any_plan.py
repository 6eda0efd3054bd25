# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A quick memory plan for graphs of many layers that have nothing to do with one another.

They are a hard problem for the planner, which would look for the smallest arena for half a minute. What is
tested on such graphs is how layers compute: any plan will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tinyml.memory.plan.draft import Draughtsman
from tinyml.memory.plan.solve import ORDERS


@contextmanager
def any_plan(alignment: int = 1) -> Iterator[None]:
    """Plans are made in one try, in the order of the graph.

    Blocks that may be anywhere are aligned to ``alignment`` bytes.
    """
    solve: dict[str, Any] = {
        "PREFERRED_ALIGNMENTS": (alignment,),
        "ORDERS": ORDERS[:1],
        "REPAIRED_BLOCKS": 0,
        "SEARCH_WORK": 0,
    }
    with (
        mock.patch.multiple("tinyml.memory.plan.solve", **solve),
        mock.patch.object(Draughtsman, "best", lambda self: self._placed(self._not_worth_it)),
        mock.patch.multiple("tinyml.memory.schedule", MAX_SETS=0),
    ):
        yield
