# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What code costs on silicon, as far as that can be known without it: estimates of cycles."""
