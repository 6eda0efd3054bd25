# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/data_image.md, kernels and records of the player: ``python -m tools.player_docs``"""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.kernels import BY_NUMBER
from tinyml.player.layout import Layout
from tools.environment import ROOT

PAGE = ROOT / "docs" / "data_image.md"
TYPES = {"h": "int16", "H": "uint16", "i": "int32", "I": "uint32", "b": "int8", "B": "uint8", "f": "float"}
TYPES |= {"I*": "position", "q": "int64", "d": "double"}


def main() -> int:
    text = PAGE.read_text("utf-8")
    PAGE.write_text(page(text), "utf-8")
    return 0


def page(text: str) -> str:
    return _between(_between(text, "kernels", kernels()), "records", members())


def names() -> dict[Layout, str]:
    """The records by the names that ``tinyml.player.records`` gives them."""
    found = {value: name for name, value in vars(records).items() if isinstance(value, Layout)}
    return {layout: name.lower() for layout, name in found.items()}


def kernels() -> list[str]:
    known = names()
    rows = [
        f"| {number} | `{kernel.name.replace(' ', '`, `')}` | {known[kernel.record]} | {kernel.operands} |"
        for number, kernel in sorted(BY_NUMBER.items())
    ]
    return [
        "| number | kernel, and its loop if it takes one | record | operands |",
        "|---:|---|---|---:|",
        *rows,
    ]


def members() -> list[str]:
    used = {kernel.record for kernel in BY_NUMBER.values()}
    rows = [
        f"| {name} | {layout.size} | {_members(layout)} |"
        for layout, name in sorted(names().items(), key=lambda pair: pair[1])
        if layout in used
    ]
    return ["| record | bytes | members |", "|---|---:|---|", *rows]


def _members(layout: Layout) -> str:
    """Members of one type in a row share its name."""
    parts: list[tuple[str, list[str]]] = []
    for member in layout.members:
        code, _, name = member.partition(" ")
        if not name:
            parts.append((f"{code.removesuffix('x') or '1'} unused bytes", []))
        elif parts and parts[-1][0] == TYPES[code]:
            parts[-1][1].append(name.lstrip("."))
        else:
            parts.append((TYPES[code], [name.lstrip(".")]))
    return "; ".join(f"{kind} {', '.join(found)}".strip() for kind, found in parts)


def _between(text: str, mark: str, lines: list[str]) -> str:
    start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return before + start + "\n".join(lines) + "\n" + end + after


if __name__ == "__main__":
    raise SystemExit(main())
