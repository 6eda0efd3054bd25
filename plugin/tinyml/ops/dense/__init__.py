# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers and matrix products."""
