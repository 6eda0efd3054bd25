# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model learns on the device: which layer, with which constants, and the same steps in numpy."""
