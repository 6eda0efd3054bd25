"""The samples as Twister runs them: outputs on the device against those of the host, byte for byte."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from tests.zephyr.building import ROOT, run

# A 64-bit host without 32-bit libraries can only build the 64-bit variant; there, they are the same code.
NATIVE = "native_sim/native/64"
BOARDS = [
    "qemu_cortex_m3",
    "mps2/an385",
    "qemu_cortex_m4",  # DSP instructions; ours, as is the next
    "qemu_cortex_m7",
    "mps3/corstone300/an547",  # Cortex-M55 with MVE
    NATIVE,
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Platform -> how the digits sample ended there."""
    folder = tmp_path_factory.mktemp("twister")
    platforms = [word for board in BOARDS for word in ("-p", board)]
    command: list[str | Path] = ["west", "twister", "-T", ROOT / "samples" / "digits", *platforms]
    said = run([*command, "-O", folder / "out", "-j", "2"], folder, check=False)
    report = folder / "out" / "twister.json"
    assert report.exists(), said
    suites = json.loads(report.read_text())["testsuites"]
    return {suite["platform"]: f"{suite['status']} {suite.get('reason', '')}".strip() for suite in suites}


@pytest.mark.parametrize("board", BOARDS)
def test_digits(results: dict[str, str], board: str) -> None:
    """Twister names a platform in full, with the SoC where a board has only one."""
    ended = [status for name, status in results.items() if name.startswith(board)]
    assert ended == ["passed"], f"{results} on {platform.machine()}"
