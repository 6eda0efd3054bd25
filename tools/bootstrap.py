# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Set up everything that ``make demo`` and ``make test`` need; quick when there is nothing to do.

``python3 -m tools.bootstrap [--for-tests | --remove]``

Standard library only: this runs before anything is installed. Three steps, in this order because each
needs the one before: system packages (apt, where that is allowed), a virtual environment in ``.venv``,
a west workspace in a cache folder. What cannot be had is named and the rest goes on; only a missing
virtual environment is fatal, since nothing runs without it.
"""

from __future__ import annotations

import argparse
import shutil
import sys

from tools import environment, packages, workspace
from tools.console import StepError

LOG = environment.ROOT / "build" / "setup.log"


def remove() -> None:
    """Undo the set-up, but for system packages; a workspace that we did not make stays."""
    shutil.rmtree(environment.VENV, ignore_errors=True)
    if workspace.is_cached(place := workspace.location()):
        shutil.rmtree(place, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="set up the tools of this project")
    parser.add_argument("--remove", action="store_true", help="remove .venv and the cached west workspace")
    parser.add_argument("--for-tests", action="store_true", help="also what only tests need")
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
