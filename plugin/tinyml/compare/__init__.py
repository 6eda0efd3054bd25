# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Does the C compute what the model says? Against a reference runtime, and where it first does not."""
