# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of library functions that are linked again."""

from __future__ import annotations

from tinyml.cost.model import Code
from tools.fit_links import with_links


def test_functions_that_changed_that_are_new_and_that_are_gone() -> None:
    old = Code(
        (("a.c .text.a", 100), ("b.c .text.b", 40), ("gone.c .text.gone", 30), ("inline c", 12)),
        {"a": (0, 1), "c": (1, 3), "gone": (2,)},
    )
    found = with_links(
        old, {"a": [("a.c .text.a", 120), ("b.c .text.b", 44)], "new": [("new.c .text.new", 8)]}
    )
    assert dict(found.pieces) == {"a.c .text.a": 120, "b.c .text.b": 44, "new.c .text.new": 8, "inline c": 12}
    assert [found.linked([name]) for name in ("a", "c", "new", "gone")] == [164, 56, 8, 0]
