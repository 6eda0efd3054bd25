# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Zephyr as PlatformIO builds it, by the script that comes with its package."""

from pathlib import Path

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
package = Path(env.PioPlatform().get_package_dir("framework-zephyr"))
env.SConscript(str(package / "scripts" / "platformio" / "platformio-build.py"), exports={"env": env})
