# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What code costs on silicon, as far as that can be known without it: estimates of cycles."""

from tinyml.cost.cycles import Cycles, Unknown, run_files

__all__ = ["Cycles", "Unknown", "run_files"]
