# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a user can choose for a model."""
