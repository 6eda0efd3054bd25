# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random valid models: generated from a recipe, compared with exact references, shrunk when they fail."""
