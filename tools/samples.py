# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run samples with Twister on the boards that their sample.yaml names and the suite does not run.

``python -m tools.samples [--hals DIR] [--board BOARD ...] [SAMPLE ...]`` updates docs/SAMPLE_BOARDS.md. The
suite runs the integration platforms. Boards of vendors need their HALs, from the workspace or from DIR (see
``tools.boards``); RISC-V needs its compiler and emulator. What cannot be run here keeps its line.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.boards import BOARDS, find_hal, zephyr_version
from tools.environment import ROOT

PAGE = ROOT / "docs" / "SAMPLE_BOARDS.md"
HEADER = """\
# Samples and their boards

The tests run each sample on its integration platforms: an emulated Cortex-M3 and native_sim. This page has
the other boards that the `sample.yaml` files name. Emulated boards run the sample, and Twister compares what
it prints; boards that cannot be emulated are built. `python -m tools.samples` writes this page, and a test
compares it with the files.

Samples that replay recordings in real time do not name mps2/an385: its emulator follows the clock of the
host, so a busy host makes the samples lose data, which they count and report. On qemu_cortex_m3 time is that
of the emulated core. The 32-bit native_sim is not named: it requires a compiler for 32-bit x86.

| test | board | result | Zephyr | date |
|---|---|---|---|---|
"""
GOOD = ("passed", "built")


@dataclass(frozen=True)
class Named:
    """A test of a sample on one of its boards."""

    sample: Path
    test: str
    board: str
    build_only: bool = False
    in_suite: bool = False  # an integration platform


def outside(samples: Iterable[Path] = ()) -> list[Named]:
    """The pairs that the suite does not run."""
    return [pair for pair in named(samples) if not pair.in_suite]


def named(samples: Iterable[Path] = ()) -> list[Named]:
    """All pairs of test and board that sample.yaml files name."""
    folders = sorted(samples) or sorted(path.parent for path in (ROOT / "samples").glob("*/sample.yaml"))
    return [pair for folder in folders for pair in _of(folder)]


def _of(folder: Path) -> Iterator[Named]:
    for test, facts in yaml.safe_load((folder / "sample.yaml").read_text())["tests"].items():
        for board in facts["platform_allow"]:
            suite = board in facts.get("integration_platforms", ())
            yield Named(folder, test, board, bool(facts.get("build_only")), suite)


def line(pair: Named, result: str, zephyr: str, date: str) -> str:
    return f"| {pair.test.removeprefix('sample.tinyml.')} | `{pair.board}` | {result} | {zephyr} | {date} |"


def recorded(page: str) -> dict[tuple[str, str], str]:
    """The lines of the page by test and board."""
    found = re.findall(r"^(\| (\S+) \| `(\S+)` \| .* \|)$", page, re.MULTILINE)
    return {(f"sample.tinyml.{test}", board): text for text, test, board in found}


def renewed(page: str, new: dict[tuple[str, str], str], pairs: Sequence[Named]) -> str:
    """The page with new lines, and without those of boards that no sample names any more."""
    lines = recorded(page) | new
    kept = [lines[pair.test, pair.board] for pair in pairs if (pair.test, pair.board) in lines]
    return HEADER + "\n".join(kept) + "\n"


def run(pairs: Sequence[Named], board: str, hals: Path | None, place: Path) -> dict[tuple[str, str], str]:
    """How the tests on a board ended, in one run of Twister."""
    from tests.zephyr.building import environment, twister
    from tinyml.harness.zephyr.compilers import compiler_for

    more = compiler_for(board, environment())
    # Debian's linker for RISC-V warns of what Zephyr's linker script does
    options = ["--disable-warnings-as-errors"] if more.get("CROSS_COMPILE") else []
    options += ["--timeout-multiplier", "5"]  # for hosts that are busy with other things
    found = [find_hal(name, place, hals) for name in dict.fromkeys(BOARDS.values())]
    modules = [str(hal) for hal in found if hal is not None and not hal.is_relative_to(place)]
    more["EXTRA_ZEPHYR_MODULES"] = ";".join([str(ROOT / "boards"), *modules])  # a list of CMake
    with tempfile.TemporaryDirectory() as folder:
        samples = sorted({pair.sample for pair in pairs})
        ended = twister(samples, [board], Path(folder), *options, more=more)
    return {(test, board): status for (test, place_), status in ended.items() if place_.startswith(board)}


def worded(status: str, pair: Named) -> str | None:
    """A status of Twister for the page; None where nothing was tried."""
    if pair.build_only and status.startswith(("passed", "not run")):
        return "built"
    if status.startswith(("filtered", "skipped", "not run")):
        return None
    return status.replace("|", "/")


def main(argv: list[str]) -> int:
    from tools import workspace

    parser = argparse.ArgumentParser(description="run the samples on the boards that they name")
    parser.add_argument("samples", nargs="*", metavar="SAMPLE", help="default: all")
    parser.add_argument("--board", action="append", metavar="BOARD", help="default: all that are named")
    parser.add_argument("--hals", type=Path, metavar="DIR", help="folder with hal_nordic, hal_stm32, ...")
    args = parser.parse_args(argv)
    place = workspace.find()
    if place is None:
        print(workspace.why_not(workspace.location()), file=sys.stderr)
        return 1
    zephyr, date, failed = zephyr_version(place), datetime.date.today().isoformat(), False
    wanted = outside([ROOT / "samples" / name for name in args.samples])
    for board in args.board or dict.fromkeys(pair.board for pair in wanted):
        here = [pair for pair in wanted if pair.board == board]
        if not here:
            continue
        ended = run(here, board, args.hals, place)
        lines = {}
        for pair in here:
            result = worded(ended.get((pair.test, board), "skipped"), pair)
            print(f"{pair.test} on {board}: {result or 'cannot be run here'}", flush=True)
            if result is not None:
                lines[pair.test, board] = line(pair, result, zephyr, date)
                failed |= result not in GOOD
        PAGE.write_text(renewed(PAGE.read_text() if PAGE.exists() else "", lines, outside()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
