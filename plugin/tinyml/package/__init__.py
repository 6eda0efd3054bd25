# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The last stage: a folder of C with a summary in JSON, which any build system can use."""
