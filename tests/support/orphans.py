# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Processes that a test process forks end with it, even if it crashes.

Models that may crash LiteRT run in one, and plugins of pytest fork some. Left behind by a worker of xdist
that crashed, it would hold the worker's pipe open, and xdist would wait for ever for that worker's end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_this_process() -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        os.register_at_fork(after_in_child=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
