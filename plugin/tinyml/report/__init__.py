# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a compiled model is made of and what it takes, for people and for programs."""
