# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Code shared by all kernels with constant weights: records, streams, multipliers, byte weights, int16."""
