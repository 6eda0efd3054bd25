# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The ``tinyml`` console command: parse, call, print. What a verb does is in ``verbs/``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tinyml import __version__
from tinyml.verbs import VERBS
from tinyml.verbs.base import main as run_verb


def main(argv: Sequence[str] | None = None) -> int:
    return run_verb(VERBS, sys.argv[1:] if argv is None else argv, "tinyml", __version__)


if __name__ == "__main__":
    raise SystemExit(main())
