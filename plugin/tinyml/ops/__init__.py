# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One file per operator, one folder per family of operators.

``catalog.py`` imports all of them. ``framework/`` is what operators are made of, ``shared/`` holds helpers
for several families and ``weighted/`` what all kernels with constant weights have in common; none of these
registers an operator.
"""
