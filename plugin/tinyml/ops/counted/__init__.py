# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that decide at run time how many results there are: each has a bound, and gives a count."""
