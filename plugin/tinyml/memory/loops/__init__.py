# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops: where the tensors of their bodies are, and the C that runs a body again and again."""
