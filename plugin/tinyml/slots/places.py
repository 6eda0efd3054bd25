# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the slots of a device are: addresses that the user gives, or partitions of a Zephyr build."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError, ToolError
from tinyml.setup.workspace import find_zephyr
from tinyml.slots.pack import Slot

_FORM = (
    "--slots a=0x60000,b=0x70000, with sizes as in a=0x60000+0x10000; or names of partitions with -b or -d"
)


def parse_slots(text: str) -> tuple[Slot, ...] | tuple[str, ...]:
    """Slots with their addresses, or only names."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ConfigError("--slots names no slot", _FORM)
    if any("=" in word for word in words):
        return tuple(_slot(word) for word in words)
    return tuple(words)


def _slot(word: str) -> Slot:
    name, _, where = word.partition("=")
    address, plus, size = where.partition("+")
    try:
        return Slot(name.strip(), int(address, 0), int(size, 0) if plus else None)
    except ValueError:
        raise ConfigError(f"{word!r} is not a slot", _FORM) from None


def slots_of_build(folder: Path, names: tuple[str, ...]) -> tuple[Slot, ...]:
    """The partitions with these labels in the devicetree of a Zephyr build."""
    edt = _devicetree(folder)
    return tuple(_partition(edt, name) for name in names)


def target_of_build(folder: Path) -> str:
    """The core that a Zephyr build is for, as the compiler calls it."""
    noted = folder / "tinyml" / "target.txt"
    try:
        return noted.read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigError(
            f"there is no Zephyr build with CONFIG_TINYML in {folder}", "build the firmware first: west build"
        ) from None


def _devicetree(folder: Path) -> Any:
    zephyr = find_zephyr()
    if zephyr is None:
        raise ToolError("there is no Zephyr here to read the devicetree with", "set ZEPHYR_BASE")
    path = folder / "zephyr" / "edt.pickle"
    module = str(zephyr / "scripts" / "dts" / "python-devicetree" / "src")
    if module not in sys.path:
        sys.path.append(module)
    try:
        return pickle.loads(path.read_bytes())  # written by the build, which runs programs of its own anyway
    except OSError as error:
        raise ConfigError(f"cannot read the devicetree {path}: {error.strerror}", "west build") from None


def _partition(edt: Any, name: str) -> Slot:
    node = edt.label2node.get(name)
    if node is None or not node.regs or node.parent is None:
        partitions = [n.labels[0] for n in edt.nodes if n.labels and _is_partition(n)]
        raise ConfigError(
            f"the devicetree has no partition labelled {name!r}", f"one of: {', '.join(partitions) or 'none'}"
        )
    return Slot(name, _flash_start(node) + node.regs[0].addr, node.regs[0].size)


def _is_partition(node: Any) -> bool:
    return node.parent is not None and "fixed-partitions" in node.parent.compats


def _flash_start(partition: Any) -> int:
    """The base of a partition's addresses: its flash, or the memory that emulates it."""
    if not _is_partition(partition):
        return 0  # an address of its own
    flash = partition.parent.parent
    played = flash.parent.props.get("memory-region") if flash.parent is not None else None
    start = played.val.regs[0].addr if played is not None else flash.regs[0].addr
    return int(start)
