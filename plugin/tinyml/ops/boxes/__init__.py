# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What detectors end with: of many overlapping boxes, those that are kept."""
