# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The compiler's own writer of TFLite files, by which tests of the importer control what a file contains."""

from tinyml.npu.tflite_writer import TYPES, Call, Part, Value, write

__all__ = ["TYPES", "Call", "Part", "Value", "write"]
