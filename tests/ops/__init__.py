# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cases for the operators, as data: one file per file of ``tinyml/ops``, each with a list ``CASES``."""
