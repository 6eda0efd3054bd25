# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What is installed, and where: Python packages, the west workspace, the parts of this installation."""
