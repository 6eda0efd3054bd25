# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms and mel filter banks."""
