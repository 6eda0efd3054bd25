# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The ``tinyml`` console command: parse, call, print. What a verb does is in ``verbs/``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from tinyml.base.errors import INTERRUPTED

GARBAGE = 10_000
"""Objects between two looks for garbage; Python looks after each 700."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; without ``argv`` it is that of this process, which ends afterwards."""
    if argv is None:
        gc.set_threshold(GARBAGE)  # a command makes much that stays, and looking took a seventh of its time
        try:
            return _run(sys.argv[1:])
        finally:
            gc.freeze()  # what is left goes with the process: taking it apart took as long
    return _run(argv)


def _run(argv: Sequence[str]) -> int:
    try:
        from tinyml import __version__
        from tinyml.verbs import VERBS  # takes a while, in which Ctrl-C must not show a traceback either
        from tinyml.verbs.base import main as run_verb

        return run_verb(VERBS, argv, "tinyml", __version__)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
