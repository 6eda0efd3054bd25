# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Importing this module imports every operator, and each registers its readers and kernels.

There is no list to edit.
"""

from importlib import import_module
from pkgutil import walk_packages

from tinyml import ops

for _module in walk_packages(ops.__path__, f"{ops.__name__}."):
    import_module(_module.name)
