# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where every tensor lives: buffer sharing, offsets in the arena, and an independent check of the plan."""

from tinyml.memory.plan.planner import Plan, lower_bound_bytes, memory_peaks, plan, validate_plan
from tinyml.memory.plan.regions import Location, Region

__all__ = ["Location", "Plan", "Region", "lower_bound_bytes", "memory_peaks", "plan", "validate_plan"]
