# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Set up everything that ``make demo`` and ``make test`` require; quick if there is nothing to do.

``python3 -m tools.bootstrap [--for-tests | --remove]``

This runs before anything is installed, so it uses the standard library only. There are three steps, each of
which requires the one before: system packages (apt, if permitted), a virtual environment in ``.venv``, and a
west workspace in a cache folder. A step that fails is reported, and the others continue; only a missing
virtual environment is fatal, because nothing runs without it.
"""

from __future__ import annotations

import argparse
import shutil
import sys

from tools import environment, packages, workspace
from tools.console import StepError

LOG = environment.ROOT / "build" / "setup.log"


def remove() -> None:
    """Undo the set-up except for system packages; keep a workspace that we did not create."""
    shutil.rmtree(environment.VENV, ignore_errors=True)
    if workspace.is_cached(place := workspace.location()):
        shutil.rmtree(place, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="set up the tools of this project")
    parser.add_argument("--remove", action="store_true", help="remove .venv and the cached west workspace")
    parser.add_argument("--for-tests", action="store_true", help="also install what only tests require")
    args = parser.parse_args()
    if args.remove:
        remove()
        return 0
    LOG.unlink(missing_ok=True)
    try:
        packages.ensure(LOG, args.for_tests)
        environment.ensure(LOG)
        workspace.ensure(LOG)
    except StepError as error:
        print(f"set-up stopped: {error}", file=sys.stderr)
        if error.hint:
            print(f"  try: {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
