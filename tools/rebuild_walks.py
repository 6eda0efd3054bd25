# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Change an application at random and build it after each change: python -m tools.rebuild_walks

With --platformio, the application is a PlatformIO project and `pio run` builds it. Each step is one to three
edits of models, external data, settings or generated files. The build must then
give what a build from scratch gives, or fail where that fails; a second build must have nothing to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.platformio.conftest import Project, without_registry
from tests.rebuilds import platformio_walk, walk


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="steps of a walk (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another walk")
    parser.add_argument("--platformio", action="store_true", help="a PlatformIO project instead of CMake")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyml-walk-") as folder:
        if args.platformio:
            project = Project(Path(folder) / "a walk", without_registry(Path(folder) / "core")).of_a_copy
            done = platformio_walk.walk(project, args.seed, args.steps, tell=True)
        else:
            done = walk.walk(Path(folder) / "a walk", args.seed, args.steps, tell=True)
    return 1 if done[-1].startswith("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
