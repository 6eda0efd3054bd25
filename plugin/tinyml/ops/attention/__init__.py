# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention in one operator: no matrix of scores exists, only a few rows of it."""
