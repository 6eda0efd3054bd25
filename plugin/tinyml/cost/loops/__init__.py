# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What decides how many instructions a layer takes that is loops in the model's own C: read from that C."""
