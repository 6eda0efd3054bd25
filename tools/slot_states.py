# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Explore updates of slots on the device's own code, and write the table of docs/TESTING.md.

``python -m tools.slot_states [KIND ...] [--write]``

The explorer (``tests/support/slot_model*.c``) visits every state that a device can reach within some limits,
on each kind of flash. It takes minutes; ``tests/host/test_slot_model.py`` explores a part.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tests.support.slot_model import Flash, Limits, build_model, explore, flashes, make_files, sweep

PAGE = ROOT / "docs" / "TESTING.md"
LIMITS = (
    Limits(begins=2, cuts=1, rots=0, clients=2),
    Limits(begins=2, cuts=0, rots=1, clients=2),
    Limits(begins=1, cuts=2, rots=0, clients=1),
    Limits(begins=1, cuts=1, rots=1, clients=1),
)


def explored(program: Path, folder: Path, flash: Flash) -> list[int]:
    """States for each of the limits; then images and failures of the sweep."""
    files = make_files(folder, flash)
    states = [explore(program, flash, files, limits)["states"] for limits in LIMITS]
    swept = sweep(program, flash, files, again=False)
    return [*states, swept["images"], swept["failures"]]


def table(rows: dict[str, list[int]]) -> str:
    heads = [
        ", ".join(
            (
                counted(limits.begins, "update"),
                counted(limits.cuts, "failure"),
                counted(limits.rots, "bit"),
                counted(limits.clients, "client"),
            )
        )
        for limits in LIMITS
    ]
    lines = [f"| flash | {' | '.join(heads)} | images | failures in updates with them |"]
    lines.append("|" + "---|" * (len(LIMITS) + 3))
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    for name, counts in {**rows, "all": total}.items():
        lines.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |")
    return "\n".join(lines)


def counted(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def main() -> int:
    parser = argparse.ArgumentParser(description="explore updates of slots")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of flash (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table of docs/TESTING.md")
    parser.add_argument("--jobs", type=int, default=1, help="at the same time (default: 1)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyml-") as name:
        folder = Path(name)
        program = build_model(folder, sanitized=False)
        chosen = [flash for flash in flashes(program) if not args.kinds or flash.name in args.kinds]
        if not chosen:
            parser.error(f"no such flash; there are: {', '.join(flash.name for flash in flashes(program))}")
        with ThreadPoolExecutor(args.jobs) as pool:
            results = pool.map(lambda flash: explored(program, folder, flash), chosen)
            rows = {flash.name: counts for flash, counts in zip(chosen, results, strict=True)}
    text = table(rows)
    print(text)
    if args.write:
        page = PAGE.read_text(encoding="utf-8")
        pattern = r"(<!-- slot_states -->\n).*?(<!-- end -->)"
        assert re.search(pattern, page, re.DOTALL), "the page has no place for the table"
        changed = re.sub(pattern, lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page, flags=re.DOTALL)
        PAGE.write_text(changed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
