# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arm Ethos-U: parts of a graph become one operator each, which Arm's compiler Vela translates.

Vela decides what the NPU can compute. The remaining operators stay with our own kernels on the CPU.
"""
