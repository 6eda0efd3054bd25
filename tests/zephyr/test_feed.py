# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A front end in a Zephyr build: from tinyml.yaml to kws_feed(), with samples from an interrupt."""

from __future__ import annotations

import pytest

from tests.zephyr.building import ROOT, TWISTER_SECONDS, twister
from tests.zephyr.feed import make_expected

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

BOARDS = ["qemu_cortex_m3", "native_sim/native/64"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    return twister([ROOT / "tests" / "zephyr" / "feed"], BOARDS, tmp_path_factory.mktemp("feed"))


@pytest.mark.parametrize("board", BOARDS)
def test_feed(results: dict[tuple[str, str], str], board: str) -> None:
    ended = [status for (_, place), status in results.items() if place.startswith(board)]
    assert ended == ["passed"], results


def test_the_expected_features_are_those_of_numpy() -> None:
    assert (make_expected.FOLDER / "src" / "expected.h").read_text(encoding="utf-8") == make_expected.header()
