# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Lets builds in different folders share objects: Zephyr uses ccache where it is installed.

Paths in temporary folders are hashed relative to the build. Those outside are the same in every build, but
would not be if they were relative: builds are at different depths.
"""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("CCACHE_BASEDIR", tempfile.gettempdir())
os.environ.setdefault("CCACHE_NOHASHDIR", "1")
