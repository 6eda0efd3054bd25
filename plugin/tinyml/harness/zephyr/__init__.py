# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model inside a Zephyr image: built with west, run in an emulator or on hardware."""

from tinyml.harness.zephyr.application import devicetree_options, write_application
from tinyml.harness.zephyr.board_runner import Cost, Port, ZephyrPlace
from tinyml.harness.zephyr.failures import DevicetreeError
from tinyml.harness.zephyr.image_build import Build
from tinyml.harness.zephyr.site import Site, find_site

__all__ = [
    "Build",
    "Cost",
    "DevicetreeError",
    "Port",
    "Site",
    "ZephyrPlace",
    "devicetree_options",
    "find_site",
    "write_application",
]
