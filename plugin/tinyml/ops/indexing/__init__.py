# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write elements by index."""
