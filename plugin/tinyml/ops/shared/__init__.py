# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Helpers for operators of several families; nothing here registers an operator."""
