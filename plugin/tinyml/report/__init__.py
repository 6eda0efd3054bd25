# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reports on compiled models: layers, memory, budgets and changes, as text, JSON and HTML."""
