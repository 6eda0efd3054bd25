# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project: its options, its models, its board, and what the build needs from us.

``plugin/platformio_hook.py`` puts the results into SCons' graph. Everything here works, and is tested,
without SCons.
"""
