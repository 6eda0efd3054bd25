# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Give changed packs to the player: python -m tools.hostile_packs [--count N] [--seed S] [--on MACHINE]

Real packs of small layers are changed at random, by a seed: bits, words, records, calls, positions; half
of them get a valid checksum again. The player refuses a pack or runs it. On the host it does so under
sanitizers, in memory of exactly the stated sizes; on an emulated core there are guards around all memory.
A crash, a hang, a changed image or guard, or a real pack that is refused is a finding, with the number of
its pack:

python -m tools.hostile_packs --seed S --first NUMBER --count 1
"""

from __future__ import annotations

import argparse
import sys
import time

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tests.support.hostile_packs import TEXTS, campaign
from tinyml import harness
from tinyml.base.errors import TinymlError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="packs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other changes")
    parser.add_argument("--first", type=int, default=0, help="the number of the first pack")
    parser.add_argument(
        "--on", default="host", choices=["host", *harness.MACHINES], help="where (%(default)s)"
    )
    args = parser.parse_args()
    begun = time.monotonic()
    try:
        counts = campaign(args.on, args.seed, args.first, args.count)
    except TinymlError as error:
        print(error)
        return 1
    for error_number, count in sorted(counts.items(), reverse=True):
        print(f"{count:10,} {TEXTS.get(error_number, error_number)}")
    seconds = time.monotonic() - begun
    print(f"{sum(counts.values()):10,} in {seconds:.0f} s with the build, on {args.on}, seed {args.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
