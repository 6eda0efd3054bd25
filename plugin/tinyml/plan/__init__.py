# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where every tensor lives: buffer sharing, offsets in the arena, and an independent check of the plan."""

from tinyml.plan.planner import Plan, lower_bound_bytes, memory_peaks, plan
from tinyml.plan.regions import Place, Region

__all__ = ["Place", "Plan", "Region", "lower_bound_bytes", "memory_peaks", "plan"]
