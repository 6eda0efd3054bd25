# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float to int8, from model file to model file: calibration, choice of ranges, and an accuracy report.

onnxruntime's quantiser does the work on ONNX; a float TFLite model is written as ONNX first. The result is
an ONNX model with QuantizeLinear and DequantizeLinear, which the importer reads like any other.
"""
