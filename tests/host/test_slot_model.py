# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Updates of slots explored on the device's own code: every order of steps, every power failure, all kinds of
flash. ``python -m tools.slot_states`` explores more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import slot_images as fake
from tests.support.slot_model import (
    Flash,
    Limits,
    Violation,
    build_model,
    explore,
    flashes,
    make_files,
    sweep,
)

CUTS = Limits(begins=1, cuts=1, rots=0, clients=1)
CLIENTS = Limits(begins=2, cuts=0, rots=0, clients=2)
ROT = Limits(begins=1, cuts=0, rots=1, clients=1)
KINDS = (
    "nor", "ecc", "ecc-32", "small-units", "mixed-units", "one-unit", "large-writes", "stream", "faults",
    "faults-pages",
)  # fmt: skip
REPLACED = Limits(begins=2, cuts=1, rots=0, clients=1)
SOME = ("nor", "mixed-units", "faults")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model(tmp_path_factory.mktemp("model"))


def flash_called(program: Path, name: str) -> Flash:
    (found,) = (flash for flash in flashes(program) if flash.name == name)
    return found


def test_all_kinds_of_flash_are_named(model: Path) -> None:
    assert tuple(flash.name for flash in flashes(model)) == KINDS


def test_images_have_every_byte(model: Path, tmp_path: Path) -> None:
    """Also erased bytes across every boundary of a sector."""
    for name in KINDS:
        flash = flash_called(model, name)
        contents = [Path(path).read_bytes()[8:] for path in make_files(tmp_path, flash)]
        assert len(contents[0]) == 2 * (flash.room // 32 * 32), "they reach as far as images may"
        assert set(b"".join(contents)) == set(range(256))
    whole = fake.image_of(size=2000)
    for boundary in range(fake.SECTOR, 2000, fake.SECTOR):
        assert whole[boundary - 4 : boundary + 4] == b"\xff" * 8
        assert whole[boundary + fake.SECTOR // 2 - 4 :][:8] == bytes(8)


@pytest.mark.parametrize("name", KINDS)
def test_power_fails_anywhere(model: Path, tmp_path: Path, name: str) -> None:
    flash = flash_called(model, name)
    found = explore(model, flash, make_files(tmp_path, flash), CUTS)
    assert found["states"] > 1000
    whole_slots = name in ("one-unit", "large-writes")  # images end in the first unit
    assert found["resumed"] > 100 or whole_slots


@pytest.mark.parametrize("name", SOME)
def test_two_clients(model: Path, tmp_path: Path, name: str) -> None:
    flash = flash_called(model, name)
    assert explore(model, flash, make_files(tmp_path, flash), CLIENTS)["states"] > 2000


@pytest.mark.parametrize("name", SOME)
def test_bits_rot(model: Path, tmp_path: Path, name: str) -> None:
    flash = flash_called(model, name)
    assert explore(model, flash, make_files(tmp_path, flash), ROT)["states"] > 2000


@pytest.mark.parametrize("name", ["nor", "ecc"])
def test_runs_of_erased_bytes_and_zeros(model: Path, tmp_path: Path, name: str) -> None:
    """Around each boundary of an erase unit; power fails everywhere, and the update is resumed."""
    flash = flash_called(model, name)
    found = sweep(model, flash, make_files(tmp_path, flash), again=False, distance=256)
    assert found["images"] > 50
    assert found["failures"] > 10_000
    assert found["resumed"] > 5_000


FAULTS: dict[str, tuple[str, str, str, str, Limits | None]] = {
    "only one unit is erased before an update is resumed": (
        "update.c", "error = flash_erase(region, from, region->bytes);",
        "error = flash_erase(region, from, from + 1u);", "ecc", None,
    ),
    "a rejected model stays on trial": (
        "slots.c", "(void)tinyml_slots_open(slots, slots->slot);", ";", "nor", CUTS,
    ),
    "an update goes on although another one has begun": (
        "update.c", "return update->number == update->slots->updates &&", "return true ||", "nor", CLIENTS,
    ),
    "the header of an image that is damaged counts": (
        "slots.c", "bool due = slots_is_due(&regions[i]);",
        "bool due = slots_is_due(&regions[i]) && !(slots_is_kept(&regions[1 - i]) && first != i);", "nor",
        ROT,
    ),
    "a self-test that returns NO_CODE is passed": (
        "slot.c", "return slot_call(slot, slot->test) == 0 ? 0 : TINYML_SLOT_SELF_TEST;",
        "return slot_call(slot, slot->test);", "nor", CUTS,
    ),
    "marks share an erase unit with an image that must not be read erased": (
        "marks.c", "region->flash->read != NULL ? flash_unit_start(region, room) : room", "room",
        "faults", REPLACED,
    ),
    "an image is erased before its marks": (
        "update.c", "int error = flash_erase(region, marks, region->bytes);",
        "int error = flash_erase(region, 0, region->bytes);", "faults", REPLACED,
    ),
    "an older version is accepted": (
        "update.c", "error = error != 0 ? error : tinyml_slots_newer(slots, region);", "", "nor", CLIENTS,
    ),
}  # fmt: skip
"""Faults that updates have had, or could have: the file, what it says, what it would say, and the search that
finds it (None: the sweep)."""


@pytest.mark.tenth
@pytest.mark.parametrize("name", FAULTS)
def test_the_search_finds(name: str, tmp_path: Path) -> None:
    file, right, wrong, kind, limits = FAULTS[name]
    program = build_model(tmp_path, putting(file, right, wrong))
    flash = flash_called(program, kind)
    files = make_files(tmp_path, flash)

    def search() -> None:
        if limits is None:
            sweep(program, flash, files, again=False, distance=256)
        else:
            explore(program, flash, files, limits)

    with pytest.raises(Violation):
        search()


def putting(file: str, right: str, wrong: str) -> Callable[[str, str], str]:
    def change(name: str, text: str) -> str:
        if name != file:
            return text
        assert text.count(right) == 1, f"{file} has changed"
        return text.replace(right, wrong)

    return change
