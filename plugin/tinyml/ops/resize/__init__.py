# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that sample an image at other positions."""
