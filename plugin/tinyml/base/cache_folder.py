# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where this package keeps what takes long to make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Our cache folder: workspaces, compiled objects, quantised models, compiled templates."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home, as in some containers: a folder that cannot exist
        base = os.devnull
    return Path(base) / "west-tinyml"
