# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The last stage: generated C as a part of somebody's project, whatever builds it."""
