# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs over MCUmgr: requests of our management group to a simulated device, under sanitizers.

zcbor is the real one, of the west workspace.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.host.test_slot_updates import save, simulate
from tests.support.slot_simulator import build_simulator, find_zcbor
from tinyml.slots.version import Version

ZCBOR = find_zcbor()
REQUESTS = int(os.environ.get("TINYML_FUZZ_SMP", "100000"))

if ZCBOR is None:
    pytest.skip(
        "no zcbor (west config manifest.group-filter -- +smp; west update zcbor; or TINYML_ZCBOR)",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_simulator(tmp_path_factory.mktemp("simulator"), zcbor=ZCBOR)


@pytest.fixture(scope="module", params=["code", "data"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Old, new, one that fails its test, the newest, one that is not used here."""
    folder = tmp_path_factory.mktemp("images")
    tests = (b"T\0", b"T\0", b"T\1", b"T\0", b"T\0")
    return [
        save(folder / f"{number}.img", Version(number), 11 * number, test, request.param == "data")
        for number, test in enumerate(tests, 1)
    ]


@pytest.mark.parametrize("unit", ["8", "32+256"])
def test_power_fails_at_every_write_and_erase(simulator: Path, unit: str, files: list[str]) -> None:
    """As over the other protocol: five ways in which an operation ends, three kinds of update, a second
    failure. Some parts arrive twice."""
    words = simulate(simulator, "cuts", unit, files).split()
    assert words[0] == "operations"
    assert all(int(count) > 50 for count in words[1:4])
    assert int(words[5]) > 20, "updates that were resumed"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_requests_of_any_kind(simulator: Path, files: list[str], seed: str) -> None:
    """Deployments with damaged, missing and repeated requests; noise; lists deeper than a stack."""
    said = simulate(simulator, "fuzz", "8", [*files, seed, str(REQUESTS)]).split()
    assert int(said[0]) >= REQUESTS
    assert REQUESTS // 4 < int(said[2]) < REQUESTS
    assert int(said[4]) > REQUESTS // 1000
