# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The host's own compiler; nothing to download."""

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
env.Replace(AR="gcc-ar", RANLIB="gcc-ranlib", PROGNAME="program", SIZETOOL=None)
env.Append(CCFLAGS=["-O1", "-Wall", "-Wextra", "-Werror"])
Default(env.BuildProgram())
