# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model sees and decides in the field: which counters it has, and the same counting in numpy."""
