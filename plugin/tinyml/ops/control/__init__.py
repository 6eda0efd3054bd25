# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Control flow that is decided at run time."""
