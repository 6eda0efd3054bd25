# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An application and its models: the manifest ``tinyml.yaml`` and what stands around it.

Everything here works on the files of the user's application and knows nothing of compiling, so
that CMake can read a manifest in a blink and a broken manifest is reported before anything runs.
"""
