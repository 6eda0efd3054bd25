# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU, LSTM and SVDF."""
