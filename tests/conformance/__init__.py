# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own node tests, run through generated C."""
