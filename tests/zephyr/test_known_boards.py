# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The table of boards agrees with Zephyr's devicetrees, and other boards are read from them."""

from __future__ import annotations

import sys

import pytest

from tinyml.base.errors import ConfigError
from tinyml.harness.zephyr.boards import workspace_board
from tinyml.harness.zephyr.site import Site
from tools import known_boards, workspace


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(workspace.location() / "zephyr", (sys.executable, "-m", "west"))


def test_the_table_agrees_with_zephyr(site: Site) -> None:
    assert known_boards.differences(site) == []


@pytest.mark.parametrize(
    "name,target,ram_kib,flash_kib,mhz",
    [
        ("nucleo_g071rb", "cortex-m0", 36, 128, 64.0),
        ("nrf5340dk/nrf5340/cpuapp/ns", "cortex-m33", 192, 1024, None),
        ("teensy40", "cortex-m7", 256, 2048, 600.0),
        ("frdm_mcxn947/mcxn947/cpu0", "cortex-m33", 320, 2048, None),  # pins from a module that is missing
    ],
)
def test_any_board_of_the_workspace(
    name: str, target: str, ram_kib: int, flash_kib: int, mhz: float | None, site: Site
) -> None:
    found = workspace_board(site, name)
    assert (found.target, found.ram_bytes, found.flash_bytes) == (target, ram_kib * 1024, flash_kib * 1024)
    assert found.mhz in (mhz, None) if mhz is None else found.mhz == mhz


def test_boards_that_zephyr_does_not_know(site: Site) -> None:
    with pytest.raises(ConfigError, match=r"(?s)no board called 'nucleo_l476r'.*nucleo_l476rg"):
        workspace_board(site, "nucleo_l476r")
    with pytest.raises(ConfigError, match=r"(?s)no devicetree for 'nrf52840dk'.*nrf52840dk_nrf52811"):
        workspace_board(site, "nrf52840dk")
