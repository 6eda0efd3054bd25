# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Chains of layers computed a few rows at a time, where that lowers the peak of memory."""
