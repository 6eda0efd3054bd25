# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers without the core's FPU: `verify -b` and `profile -b` warn."""

from __future__ import annotations

import pytest

from tinyml.verbs.runner_image import fpu_warning

WITH = "CONFIG_CPU_HAS_FPU=y\nCONFIG_FPU=y\n"
OFF = "CONFIG_CPU_HAS_FPU=y\n# CONFIG_FPU is not set\n"


@pytest.mark.parametrize(
    "config, prj_conf, floats, warning",
    [
        (WITH, "", 3, ""),
        (WITH, "CONFIG_FPU=y\n", 3, ""),
        (OFF, "", 0, ""),
        ("CONFIG_ARM=y\n", "CONFIG_FPU=n\n", 3, ""),  # a core without an FPU
        (OFF, "", 3, "3 layers compute in float, and CONFIG_FPU is off"),
        (WITH, "CONFIG_FPU=n\n", 3, "the application's prj.conf turns it off"),
    ],
)
def test_the_warning(config: str, prj_conf: str, floats: int, warning: str) -> None:
    found = fpu_warning(config, prj_conf, floats)
    assert warning in found
    assert bool(found) == bool(warning)
