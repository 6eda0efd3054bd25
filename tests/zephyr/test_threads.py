"""Two threads, two models: shared and exclusive arenas, with claims and without, and the check of claims."""

from __future__ import annotations

import pytest

from tests.zephyr.building import ROOT, TWISTER_SECONDS, twister

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

M3, NATIVE = "qemu_cortex_m3", "native_sim/native/64"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    return twister([ROOT / "tests" / "zephyr" / "threads"], [M3, NATIVE], tmp_path_factory.mktemp("threads"))


@pytest.mark.parametrize("board", [M3, NATIVE])
@pytest.mark.parametrize("arena", ["shared", "exclusive", "check"])
def test_two_threads(results: dict[tuple[str, str], str], arena: str, board: str) -> None:
    ended = [
        status
        for (name, place), status in results.items()
        if name == f"tinyml.threads.{arena}" and place.startswith(board)
    ]
    assert ended == ["passed"], results
