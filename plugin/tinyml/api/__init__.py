# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the package offers in Python; the command line calls the same functions."""
