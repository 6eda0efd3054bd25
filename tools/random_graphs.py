# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile random models and compare them with onnxruntime and LiteRT: python -m tools.random_graphs

python -m tools.random_graphs --count 10000           # C under sanitizers as well: about 0.2 s of CPU each
python -m tools.random_graphs --count 10000 --no-c    # only the importer, the passes and numpy
python -m tools.random_graphs --count 400 --kind nnsmith    # models by NNSmith (pip install .[nnsmith])
python -m tools.random_graphs --count 100 --kind loop --played qemu-cortex-m4    # as data, and as C there

Each failure is printed as a recipe, shrunk to as few operators as show it. Put the fault into tests/ops as a
case, and the recipe into FOUND of tests/host/test_random_graphs.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from tests.random_graphs.check import Tally, check, shrink
from tests.random_graphs.played import check_played
from tests.random_graphs.recipe import KINDS, NNSMITH, Recipe, recipe
from tinyml import harness

AT_ONCE = 90


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many models (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other models")
    parser.add_argument(
        "--kind", action="append", choices=[*KINDS, NNSMITH], help="only these kinds (repeatable)"
    )
    parser.add_argument("--no-c", dest="in_c", action="store_false", help="do not compile and run the C")
    parser.add_argument(
        "--played",
        metavar="MACHINE",
        choices=["host", *harness.MACHINES],
        help="compare the player with compiled code on a machine instead, in every bit",
    )
    args = parser.parse_args()
    if args.played and not args.in_c:
        parser.error("--played compares with compiled code: leave out --no-c")

    def tried(recipes: Iterable[Recipe]) -> Tally:
        return check_played(recipes, args.played) if args.played else check(recipes, args.in_c)

    kinds = args.kind or KINDS
    tally, begun = Tally(), time.process_time()
    for first in range(0, args.count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, args.count))
        found = tried(recipe(number, args.seed, kinds) for number in numbers)
        for wrong, why in found.wrong.items():
            print(f"wrong: {shrink(wrong, tried)}\n  {why}", flush=True)
        tally.add(found)
        print(f"\r{tally}", end="", flush=True)
    print(f"\n{time.process_time() - begun:.0f} s of CPU without the C compiler")
    for why, count in tally.refused.most_common(10):
        print(f"  {count} refused: {why}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
