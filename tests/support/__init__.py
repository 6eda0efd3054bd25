# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What several test files share."""
