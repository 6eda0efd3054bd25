# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Building the plugin that counts blocks, and running images with it."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from dataclasses import field
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.harness import Image, command, tools
from tinyml.harness.footprint import HARNESS
from tinyml.harness.objects import Unit, compile_all, excerpt

SOURCE = Path(__file__).parent / "c" / "count_blocks.c"
OUT = "blocks.txt"


@dataclass(frozen=True)
class Block:
    """How often ``count`` instructions from ``begin`` on were executed, and how often a jump ended them."""

    begin: int
    count: int
    executed: int
    taken: int


@dataclass
class Phase:
    """What was executed between two marks of a program."""

    blocks: list[Block] = field(default_factory=list)
    unaligned: int = 0  # bus transfers that loads took because of their addresses


def count_blocks(image: Image, begin: int, end: int, timeout_seconds: float = 600) -> list[Phase]:
    """Run ``image``, whose samples lie beside it, and count from each execution of ``begin`` to ``end``."""
    folder = image.path.parent
    plugin = f"./{_built(_interface(image), folder).name},begin={begin:x},end={end:x},out={OUT}"
    try:
        done = subprocess.run(
            [*command(image), "-plugin", plugin],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"counting blocks took longer than {timeout_seconds:g} seconds") from None
    if done.returncode != 0:
        raise ToolError(f"QEMU does not run with a plugin: {excerpt(done.stderr or done.stdout, 2)}")
    return _read((folder / OUT).read_text(encoding="utf-8").splitlines())


def _read(lines: list[str]) -> list[Phase]:
    found: defaultdict[int, Phase] = defaultdict(Phase)
    for line in lines:
        word, phase, *numbers = line.split()
        if word == "block":
            begin, count, executed, taken = numbers
            block = Block(int(begin, 16), int(count), int(executed), int(taken))
            found[int(phase)].blocks.append(block)
        else:
            found[int(phase)].unaligned = int(numbers[0])
    return [found[phase] for phase in range(max(found, default=-1) + 1)]


def _interface(image: Image) -> int:
    """The version of the plugin interface that QEMU takes: from 9.0 on it refuses the first."""
    assert image.machine.board is not None
    program = str(tools.qemu(image.machine.board.toolchain))
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"version (\d+)", printed)
    return 1 if version is None or int(version.group(1)) < 9 else 2


def _built(interface: int, folder: Path) -> Path:
    """The plugin, linked into ``folder``; its object is kept like those of kernels."""
    compiler = tools.host_compiler()
    flags = ("-std=gnu11", "-O2", "-fPIC", f"-DPLUGIN_API={interface}")
    objects = compile_all(compiler, [Unit(SOURCE, HARNESS, flags)])
    path = folder / "count_blocks.so"
    done = subprocess.run(
        [str(compiler.path), "-shared", *map(str, objects), "-o", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ToolError(f"{compiler.path.name} cannot link QEMU's plugin: {excerpt(done.stderr, 3)}")
    return path
