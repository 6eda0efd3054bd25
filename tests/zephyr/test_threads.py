# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Several threads: shared and exclusive arenas, with claims and without, the check of claims, user mode."""

from __future__ import annotations

import pytest

from tests.zephyr.building import ROOT, TWISTER_SECONDS, twister
from tests.zephyr.userspace import make_model

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

M3, NATIVE = "qemu_cortex_m3", "native_sim/native/64"
MPU = "mps2/an385"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    tests = ROOT / "tests" / "zephyr"
    boards = [M3, NATIVE, MPU]
    return twister([tests / "threads", tests / "userspace"], boards, tmp_path_factory.mktemp("threads"))


@pytest.mark.parametrize(
    "test,board",
    [
        *(
            (f"tinyml.threads.{arena}", board)
            for arena in ("shared", "exclusive", "check")
            for board in (M3, NATIVE)
        ),
        ("tinyml.userspace", MPU),
    ],
)
def test_threads(results: dict[tuple[str, str], str], test: str, board: str) -> None:
    ended = [status for (name, place), status in results.items() if name == test and place.startswith(board)]
    assert ended == ["passed"], results


def test_the_model_with_state_is_the_one_that_is_described() -> None:
    assert make_model.FILE.read_bytes() == make_model.model()
