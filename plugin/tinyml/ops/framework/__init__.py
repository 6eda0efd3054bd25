# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What operators are made of: kernels, readers, writers, registration, and the loader for outside files."""
