# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What models cost on a core, exactly and repeatably: instructions and bytes, never time."""
