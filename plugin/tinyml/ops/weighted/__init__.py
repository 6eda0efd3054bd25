# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What all kernels with constant weights share: records, streams, multipliers, byte weights, int16."""
