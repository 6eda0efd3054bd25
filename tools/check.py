# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``make test``: check style and types and run all four tiers of tests, even if one of them fails.

``python -m tools.check [arguments for pytest]``
"""

from __future__ import annotations

import os
import subprocess
import sys

from tools import lint
from tools.environment import ROOT


def main() -> int:
    failed = lint.run()
    workers = str(max(1, min(4, os.cpu_count() or 1)))
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", workers, *sys.argv[1:]]
    if subprocess.run(pytest, cwd=ROOT, check=False).returncode:
        failed.append("pytest")
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
