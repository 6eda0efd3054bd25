# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Single layers of random geometry, on emulated cores: ``tools/random_layers.py``."""
