# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pools: the largest, the mean or a norm of each window."""
