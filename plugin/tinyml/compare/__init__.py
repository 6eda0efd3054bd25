# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compares compiled C with a reference runtime, and finds where they first differ."""
