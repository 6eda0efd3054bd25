# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""tinyml: compile an ONNX or TFLite model into plain C that is part of a firmware build."""

__version__ = "0.1.0"
