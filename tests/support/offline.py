# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Running programs without a network: in a namespace without any interface, not even the loopback one."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

ALONE = ("unshare", "--map-root-user", "--net")
WHY_NOT = "unshare is not permitted here"


@cache
def permitted() -> bool:
    """Whether programs can be started with ALONE, and see no interface that is up there."""
    if shutil.which(ALONE[0]) is None:
        return False
    command = [*ALONE, "cat", "/proc/net/route"]  # the header, and one line for each way out
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and len(done.stdout.splitlines()) <= 1
