# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Signal front ends: what turns samples into the features that a model was trained on."""
