# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Readable C: this package computes the data, its templates shape the text."""

from tinyml.emit.model import emit

__all__ = ["emit"]
