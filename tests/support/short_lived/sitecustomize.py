# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start: the scripts of a Zephyr build end soon, and need no garbage collector.

A run of CMake starts some twenty of them; without it they take a tenth less.
"""

import gc

gc.disable()
