# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Normalisation over axes, groups and neighbourhoods."""
