# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float to int8: calibration, the choice of ranges, and an honest report of what it cost.

onnxruntime's quantiser does the work on ONNX; a float TFLite model is written as ONNX first. The result is
an ONNX model with QuantizeLinear and DequantizeLinear, which the importer reads like any other.
"""
