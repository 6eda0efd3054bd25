# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One file per operator, one folder per family of operators.

Importing this package imports every module below it, and each registers its readers and kernels: there
is no list to edit. ``shared/`` holds helpers for several families and ``weighted/`` what all kernels with
constant weights have in common; neither registers an operator.
"""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
