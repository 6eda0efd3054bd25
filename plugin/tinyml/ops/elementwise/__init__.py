# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that compute each output element from the elements at the same place."""
