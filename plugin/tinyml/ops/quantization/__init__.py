# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The borders between real numbers and integers."""
