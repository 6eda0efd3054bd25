# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The audio front end of TensorFlow's micro models: window, FFT, mel bands, noise reduction, gain, log."""
