# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""C that a person likes to read: data computed here, text shaped by the templates beside."""

from tinyml.emit.model import emit

__all__ = ["emit"]
