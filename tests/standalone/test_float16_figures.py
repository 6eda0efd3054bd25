# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What docs/fewer_bits.md says about float16 weights, and docs/floats.md about float16 sums."""

from tools.float16_figures import MACHINES, measured, stated, stated_sums, sums


def test_the_table_has_every_core() -> None:
    assert [row.split(" | ")[0] for row in stated()] == [
        f"| {machine.removeprefix('qemu-')}" for machine in MACHINES
    ]


def test_flash_is_nearly_half_and_instructions_are_within_the_stated_share() -> None:
    found = measured("qemu-cortex-m4")
    large, small = found.flash
    assert small < 0.6 * large
    assert all(before <= after < 2 * before for before, after in found.instructions)


def test_the_page_states_what_float16_sums_take_and_lose() -> None:
    assert stated_sums() == sums()
