# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A board's devicetree without a build: its sources, preprocessed and read by Zephyr's own parser.

Files that the sources include but the workspace lacks (pins, from the vendor's module) are taken to be empty;
nodes and numbers that only those files define get stand-ins. Memory and clocks are never among them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tinyml.base.errors import ToolError
from tinyml.harness import tools

_MISSING = re.compile(r"fatal error: (\S+?):")
_UNDEFINED = re.compile(r"(?<=[<\s])[A-Z]\w{2,}(?:\([^()]*\))?(?=[\s>])")
"""A macro that the preprocessor left: one from a file that is missing."""
_CLOCK_LABELS = ("clk_sys", "rcc", "sysclk")
"""Nodes whose clock-frequency is the core's where the cpu node does not say: Raspberry Pi, ST, Arm."""


class Devicetree:
    """The facts of a board's devicetree that the costs of a model depend on."""

    def __init__(self, zephyr: Path, source: Path, arch: str) -> None:
        self._tree: Any = _parse(zephyr, source, arch)

    def chosen_bytes(self, name: str) -> int | None:
        """The size of the memory that a chosen node names."""
        node = self._chosen(name)
        if node is None:
            return None
        if "size" in node.props:  # serial flash, in bits
            return int(node.props["size"].to_num()) // 8
        if "reg" not in node.props:
            return None
        cells = node.props["reg"].to_nums()
        return int(cells[-1]) if len(cells) > 1 else None

    def cpu_mhz(self) -> float | None:
        """The core's clock, if the devicetree states it."""
        cpus = [node for node in self._tree.get_node("/cpus").nodes.values() if "compatible" in node.props]
        nodes = [*cpus[:1]]
        if cpus and "clocks" in cpus[0].props:
            handle = int.from_bytes(cpus[0].props["clocks"].value[:4], "big")
            nodes.append(self._tree.phandle2node.get(handle))
        nodes += [self._tree.label2node.get(label) for label in _CLOCK_LABELS]
        for node in nodes:
            if node is not None and "clock-frequency" in node.props:
                return float(node.props["clock-frequency"].to_num()) / 1e6
        return None

    def _chosen(self, name: str) -> Any:
        chosen = self._tree.get_node("/chosen").props
        return chosen[name].to_path() if name in chosen else None


def _parse(zephyr: Path, source: Path, arch: str) -> Any:
    module = str(zephyr / "scripts" / "dts" / "python-devicetree" / "src")
    if module not in sys.path:
        sys.path.append(module)
    from devicetree import dtlib  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        text = _preprocess(zephyr, source, arch, Path(scratch))
        defined = set(re.findall(r"(\w+)\s*:", text))
        absent = sorted(set(re.findall(r"&(\w+)", text)) - defined)
        stand_ins = "".join(f"{label}: {label} {{ }}; " for label in absent)
        whole = Path(scratch) / "board.dts"
        header = "/dts-v1/;"  # every file may have it, the parser accepts it only at the beginning
        rest = _UNDEFINED.sub("0", text.replace(header, ""))
        whole.write_text(f"{header} / {{ absent {{ {stand_ins}}}; }};\n{rest}", "utf-8")
        try:
            return dtlib.DT(str(whole))
        except dtlib.DTError as error:
            raise ToolError(f"the devicetree {source} cannot be read: {error}") from None


def _preprocess(zephyr: Path, source: Path, arch: str, scratch: Path) -> str:
    places = [zephyr / word for word in ("include", "include/zephyr", "dts/common", "dts/vendor")]
    places += [zephyr / "dts" / arch, zephyr / "dts", source.parent, scratch]
    command = [str(tools.host_compiler().path), "-E", "-x", "assembler-with-cpp", "-nostdinc", "-undef", "-P"]
    command += ["-D__DTS__", *(word for place in places for word in ("-isystem", str(place))), str(source)]
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        missing = _MISSING.search(done.stderr)
        stand_in = scratch / missing[1].strip("'") if missing else scratch
        if missing is None or stand_in.exists() or not stand_in.resolve().is_relative_to(scratch.resolve()):
            raise ToolError(f"the devicetree {source} cannot be preprocessed: {done.stderr.strip()[:400]}")
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.touch()
