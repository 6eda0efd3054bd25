# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The ``tinyml`` console command: parse, call, print. What a verb does is in ``verbs/``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tinyml.base.errors import INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    try:
        from tinyml import __version__
        from tinyml.verbs import VERBS  # takes a while, in which Ctrl-C must not show a traceback either
        from tinyml.verbs.base import main as run_verb

        return run_verb(VERBS, sys.argv[1:] if argv is None else argv, "tinyml", __version__)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
