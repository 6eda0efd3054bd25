# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Everything at once on a running device: python -m tools.device_races --board mps2/an385 --seed 1

Threads of the firmware, the shell, the host protocol with damaged frames, updates and resets use the same
models (tests/device_races). Results must be right or refused, and the device must go on. Needs a west
workspace.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.device_races.boards import NATIVE, QEMU, build
from tests.device_races.campaign import campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--board", choices=(NATIVE, QEMU), default=QEMU, help="default: %(default)s")
    parser.add_argument(
        "--steps", type=int, default=300, help="things that the computer does (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed, other things")
    parser.add_argument("--build", type=Path, help="a build folder to use again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyml-races-") as folder:
        made = args.build or build(args.board, Path(folder))
        wrong = campaign(made, args.board, args.seed, args.steps, Path(folder), tell=True)
    print(f"seed {args.seed} on {args.board}: {wrong or 'nothing found'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
