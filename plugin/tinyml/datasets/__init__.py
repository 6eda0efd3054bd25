# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples: reads files of inputs and labels for every command that takes some, and generates inputs."""
