"""Set up everything that ``make demo`` and ``make test`` need; quick when there is nothing to do.

    python3 -m tools.bootstrap

Standard library only: this runs before anything is installed. Three steps, in this order because each
needs the one before: system packages (apt, where that is allowed), a virtual environment in ``.venv``,
a west workspace in a cache folder. What cannot be had is named and the rest goes on; only a missing
virtual environment is fatal, since nothing runs without it.
"""

from __future__ import annotations

import sys

from tools import environment, packages, workspace
from tools.console import StepError

LOG = environment.ROOT / "build" / "setup.log"


def main() -> int:
    LOG.unlink(missing_ok=True)
    try:
        packages.ensure(LOG)
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
