# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models as data: the program that the player runs in place of compiled code."""
