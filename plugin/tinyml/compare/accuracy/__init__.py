# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How good a compiled model is on a test set: its answers, compared with labels and with its original."""
