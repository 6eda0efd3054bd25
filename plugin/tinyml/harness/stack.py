# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A bound on the stack of a model, from the compiler's own frames and calls: the deepest path, run or not.

gcc writes the frame of each function and whom it calls (-fcallgraph-info=su). Generated code and kernels have
no recursion and no arrays of variable length, and this refuses both. A call by address counts as the deepest
function that it could reach. Functions of the C library and of the compiler (memcpy, expf, floating point
without an FPU) have no such files: LIBRARY_BYTES stand for them. Interrupts on the same stack come on top.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import Machine, find_machine
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.objects import Unit, excerpt
from tinyml.harness.program_build import Options, model_units
from tinyml.harness.tools import Compiler, cross_compiler, host_compiler

LIBRARY_BYTES = 256
"""For calls into the C library. The deepest of newlib that kernels call, powf without an FPU, needs less."""

INDIRECT = "__indirect_call"
_NODE = re.compile(r'^node: \{ title: "([^"]*)" label: "([^"]*)"')
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')
_FRAME = re.compile(r"(\d+) bytes \((static|dynamic,bounded|dynamic)\)")


@dataclass
class Calls:
    """Bytes of the frame of each function, and whom it calls."""

    frames: dict[str, int] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)

    def reaching(self, target: str) -> set[str]:
        """Functions that call ``target``, or one that does."""
        found = {target}
        while more := {f for f, callees in self.calls.items() if f not in found and callees & found}:
            found |= more
        return found


def bound_of_files(files: Mapping[str, str], on: str) -> int | None:
    """Bytes of stack that a run cannot exceed, of generated files that are not on disk.

    None where the compiler is not GCC, which alone writes call graphs.
    """
    board = find_machine(on).board
    if board and board.toolchain.compiler != board.toolchain.gnu:
        return None
    with tempfile.TemporaryDirectory(prefix="tinyml-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        return bound(read_generated(folder), find_machine(on))


def bound(model: Generated, machine: Machine, options: Options | None = None) -> int:
    """Bytes of stack that a run of ``model`` cannot exceed on ``machine``."""
    compiler = cross_compiler(machine.board.toolchain) if machine.board else host_compiler()
    with tempfile.TemporaryDirectory(prefix="tinyml-stack-") as name:
        folder = Path(name)
        units = model_units(model, machine, folder, options or Options())
        calls = read_calls(_call_graphs(compiler, units, folder))
        sources = [unit.source.read_text(encoding="utf-8", errors="replace") for unit in units]
    return deepest(without_unused(calls, sources), model.run_function) + LIBRARY_BYTES


def without_unused(calls: Calls, sources: Sequence[str]) -> Calls:
    """Without functions of which the sources have nothing but the definition: the linker leaves them out.

    A file of the runtime can define several kernels, of which a model calls one. Structures have names of
    their own.
    """
    pattern = re.compile(r"(?<!\bstruct )\btinyml_\w+")
    words = Counter(word for source in sources for word in pattern.findall(source))
    unused = {name for name in calls.frames if words[name] == 1}
    frames = {name: bytes_ for name, bytes_ in calls.frames.items() if name not in unused}
    return Calls(frames, {name: callees for name, callees in calls.calls.items() if name not in unused})


def _call_graphs(compiler: Compiler, units: Sequence[Unit], folder: Path) -> list[str]:
    def one(number: int) -> str:
        unit = units[number]
        includes = [f"-I{path}" for path in unit.includes]
        output = folder / f"{number}.o"
        arguments = [*unit.flags, *includes, "-fcallgraph-info=su", "-c", str(unit.source), "-o", str(output)]
        done = subprocess.run([str(compiler.path), *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"{compiler.path.name} writes no call graph:\n{excerpt(done.stderr, 6)}")
        return output.with_suffix(".ci").read_text(encoding="utf-8")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, range(len(units))))


def read_calls(texts: Sequence[str]) -> Calls:
    """The call graphs of all sources of a program as one. Functions of one file carry its name."""
    found = Calls()
    for text in texts:
        for line in text.splitlines():
            if node := _NODE.match(line):
                frame = _FRAME.search(node[2])
                if frame and frame[2] == "dynamic":
                    raise ToolError(f"the frame of {node[1]} has no fixed size")
                if frame:
                    found.frames[node[1]] = int(frame[1])
            elif edge := _EDGE.match(line):
                found.calls.setdefault(edge[1], set()).add(edge[2])
    return found


def deepest(calls: Calls, start: str) -> int:
    """Bytes of the frames on the deepest path from ``start``.

    A call by address may reach every function that nobody calls by name, each once on a path.
    """
    if start not in calls.frames:
        raise ToolError(f"the call graph has no function {start}")
    called = {callee for callees in calls.calls.values() for callee in callees}
    pointed = [function for function in calls.frames if function not in called]
    by_address = calls.reaching(INDIRECT)
    known: dict[str, int] = {}

    def depth(function: str, above: tuple[str, ...]) -> int:
        if function in known:
            return known[function]
        if function in above and function != INDIRECT:
            if (
                INDIRECT in above
            ):  # a path that no program takes: the call by address reaches less than assumed
                return 0
            raise ToolError(f"{function} calls itself, which leaves its stack without a bound")
        path = (*above, function)
        if function == INDIRECT:
            return max((depth(callee, path) for callee in pointed if callee not in above), default=0)
        below = (depth(callee, path) for callee in sorted(calls.calls.get(function, ())))
        found = calls.frames.get(function, 0) + max(below, default=0)
        if INDIRECT not in above and function not in by_address:
            known[function] = found  # does not depend on the path
        return found

    return depth(start, ())
