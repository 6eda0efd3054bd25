# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trees, forests, linear models and the class outputs of scikit-learn exports."""
