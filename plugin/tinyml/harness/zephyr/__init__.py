"""A model inside a Zephyr image: built with west, run in an emulator or on hardware."""

from tinyml.harness.zephyr.application import write_application
from tinyml.harness.zephyr.build import Build
from tinyml.harness.zephyr.place import Cost, Port, ZephyrPlace
from tinyml.harness.zephyr.site import Site, find_site

__all__ = ["Build", "Cost", "Port", "Site", "ZephyrPlace", "find_site", "write_application"]
