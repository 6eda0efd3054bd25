# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that must be refused: a few lines write each of them, with its expected message beside."""
