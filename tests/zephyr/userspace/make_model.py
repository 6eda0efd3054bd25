# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes stream.tflite, a small model with state: ``python -m tests.zephyr.userspace.make_model``.

It remembers two things from one run to the next, the sum of all inputs, which does not begin at zero, and the
input of the run before, which does:

    total += x;  y = total + before;  before = x
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write

FILE = Path(__file__).with_name("stream.tflite")
FIRST = np.array([1, 2, 3, 4], np.float32)  # known to src/main.c, too


def model() -> bytes:
    x, y, total, added, before = (Value(name, (4,)) for name in ("x", "y", "total", "added", "before"))
    handles = [Value("total_handle", (), "resource"), Value("before_handle", (), "resource")]
    names = [
        Call("VAR_HANDLE", [], [handle.name], "VarHandleOptions", {"SharedName": handle.name})
        for handle in handles
    ]
    main = [
        Call("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1}),
        *names,
        Call("READ_VARIABLE", ["total_handle"], ["total"], "ReadVariableOptions"),
        Call("READ_VARIABLE", ["before_handle"], ["before"], "ReadVariableOptions"),
        Call("ADD", ["total", "x"], ["added"], "AddOptions"),
        Call("ADD", ["added", "before"], ["y"], "AddOptions"),
        Call("ASSIGN_VARIABLE", ["total_handle", "added"], [], "AssignVariableOptions"),
        Call("ASSIGN_VARIABLE", ["before_handle", "x"], [], "AssignVariableOptions"),
    ]
    first = [names[0], Call("ASSIGN_VARIABLE", ["total_handle", "first"], [], "AssignVariableOptions")]
    return write(
        Part([x, y, total, added, before, *handles], main, ["x"], ["y"]),
        Part([handles[0], Value.constant("first", FIRST)], first),
    )


if __name__ == "__main__":
    FILE.write_bytes(model())
