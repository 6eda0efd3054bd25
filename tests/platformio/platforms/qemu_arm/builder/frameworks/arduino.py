# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arduino's shape without Arduino: a core with main() and a header, as far as a sketch needs them."""

from pathlib import Path

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
core = Path(env.PioPlatform().get_dir()) / "arduino"
env.Append(CPPPATH=[str(core)], CPPDEFINES=["ARDUINO=10800"])
env.BuildSources("$BUILD_DIR/core", str(core))
