# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decides where a tensor lives: kernels and their scratch memory, the schedule, bands of rows, the plan."""
