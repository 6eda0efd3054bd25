# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The bound on the stack, computed from call graphs as gcc writes them."""

from __future__ import annotations

import pytest

from tinyml.base.errors import ToolError
from tinyml.harness.stack import INDIRECT, Calls, deepest, read_calls, without_unused

GRAPH = """graph: { title: "m.c"
node: { title: "m_run" label: "m_run\\nm.c:10:5\\n24 bytes (static)" }
node: { title: "m.c:layer" label: "layer\\nm.c:2:13\\n8 bytes (dynamic,bounded)" }
node: { title: "memcpy" label: "memcpy\\n<built-in>" shape : ellipse }
edge: { sourcename: "m_run" targetname: "m.c:layer" label: "m.c:12:2" }
edge: { sourcename: "m_run" targetname: "memcpy" label: "m.c:13:2" }
}
"""


def test_the_deepest_path_counts() -> None:
    calls = read_calls([GRAPH])
    assert calls.frames == {"m_run": 24, "m.c:layer": 8}
    assert deepest(calls, "m_run") == 32


def test_a_call_by_address_reaches_what_nobody_calls_by_name() -> None:
    calls = Calls(
        {"run": 8, "kernel": 16, "small": 4, "large": 40, "called": 400},
        {"run": {"kernel"}, "kernel": {INDIRECT}, "small": {"called"}},
    )
    assert deepest(calls, "run") == 8 + 16 + 4 + 400
    assert deepest(Calls(calls.frames, {"run": {"kernel"}, "kernel": {INDIRECT}}), "run") == 8 + 16 + 400


def test_a_second_call_by_address_on_a_path_reaches_the_others() -> None:
    calls = Calls({"run": 1, "cell": 10, "function": 100}, {"run": {INDIRECT}, "cell": {INDIRECT}})
    assert deepest(calls, "run") == 111


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(ToolError, match="calls itself"):
        deepest(Calls({"run": 8, "a": 1, "b": 1}, {"run": {"a"}, "a": {"b"}, "b": {"a"}}), "run")
    with pytest.raises(ToolError, match="no fixed size"):
        read_calls([GRAPH.replace("dynamic,bounded", "dynamic")])
    with pytest.raises(ToolError, match="no function other_run"):
        deepest(read_calls([GRAPH]), "other_run")


def test_a_kernel_that_nobody_names_does_not_count() -> None:
    """It could be called by address only by a source that has its name."""
    calls = Calls({"run": 8, "tinyml_a": 16, "tinyml_b": 400}, {"run": {"tinyml_a"}, "tinyml_a": {INDIRECT}})
    runtime = "void tinyml_a(void) { pointer(); }\nvoid tinyml_b(void) {}\n"
    assert deepest(without_unused(calls, ["run() { tinyml_a(); }", runtime]), "run") == 8 + 16
    assert deepest(without_unused(calls, ["run() { tinyml_a(tinyml_b); }", runtime]), "run") == 8 + 16 + 400
