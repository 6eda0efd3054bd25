# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model runs on: targets, emulated machines, boards, accelerators and tools."""
