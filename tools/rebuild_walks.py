# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Change an application at random and build it after each change: python -m tools.rebuild_walks

Each step is one to three edits of models, external data, settings or generated files. The build must then
give what a build from scratch gives, or fail where that fails; a second build must have nothing to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.rebuilds.walk import walk


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="steps of a walk (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another walk")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyml-walk-") as folder:
        done = walk(Path(folder) / "a walk", args.seed, args.steps, tell=True)
    return 1 if done[-1].startswith("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
