# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A Zephyr application and its models: the manifest ``tinyml.yaml``, ``prj.conf`` and generated tests.

Everything here works on the files of the user's application and never compiles a model, so CMake reads
a manifest quickly, and a broken manifest is reported before anything runs.
"""
