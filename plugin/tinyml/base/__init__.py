# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What every room uses: errors, limits, progress, files that are written whole, and the spelling of C."""
