# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Conversions between real numbers and integers."""
