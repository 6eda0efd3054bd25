# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Requests of any kind to the group for packs: python -m tools.hostile_requests [--count N] [--seed S]

The handlers of CONFIG_TINYML_SMP, with the real zcbor, on a simulated device under sanitizers: deployments
with damaged, missing and repeated requests, noise, lists that are nested deeper than a stack. A crash, a
read or write outside of memory, or a model in use that was never sent whole is a finding. zcbor is that of
the west workspace (group smp), or TINYML_ZCBOR.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tests.support import slot_images as fake
from tests.support.slot_simulator import ENVIRONMENT, build_simulator, find_zcbor
from tinyml.slots.version import Version

TESTS = (b"T\0", b"T\0", b"T\1", b"T\0", b"T\0")
"""Whether the self-test of each image passes: old, new, one that fails, the newest, one more."""


def images(folder: Path, data: bool) -> list[str]:
    """Five versions of a model, with code or without."""
    found = []
    for number, test in enumerate(TESTS, 1):
        path = folder / f"{'data' if data else 'code'}_{number}.img"
        found.append(fake.save(path, Version(number), 11 * number, test, data))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="requests of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other requests")
    args = parser.parse_args()
    zcbor = find_zcbor()
    if zcbor is None:
        print("no zcbor: west config manifest.group-filter -- +smp; west update zcbor; or TINYML_ZCBOR")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulator = build_simulator(folder, zcbor=zcbor)
        for data in (False, True):
            begun = time.monotonic()
            words = [str(simulator), "fuzz", "8", *images(folder, data), str(args.seed), str(args.count)]
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=ENVIRONMENT)
            print(f"packs {'without' if data else 'with'} code, seed {args.seed}: {done.stdout.strip()}")
            print(f"  {time.monotonic() - begun:.0f} s")
            if done.returncode != 0:
                print(done.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
