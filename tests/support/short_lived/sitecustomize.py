# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start: the scripts of a Zephyr build end soon, and need no garbage collector.

A run of CMake starts some twenty of them; without it they take a tenth less.
"""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

gc.disable()

if cache := os.environ.get("TINYML_TEST_ZEPHYR_LISTS"):
    import_module("zephyr_lists").answer_or_keep(sys.orig_argv, Path(cache))  # it is beside this file
