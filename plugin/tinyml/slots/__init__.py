# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that a running device can replace: packs for slots in its flash, and how they get there."""
