# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The applications that Twister runs, and their boards: the samples, and those of tests/zephyr."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.zephyr.building import DIGITS, ROOT
from tools import samples, workspace

# A 64-bit host without 32-bit libraries can only build the 64-bit variant; there, they are the same code.
NATIVE = "native_sim/native/64"
DIGITS_BOARDS = {
    "qemu_cortex_m3": False,
    "qemu_cortex_m4": False,  # DSP instructions; test_memories.py runs the sample on it. Ours, as is the next
    "qemu_cortex_m7": False,
    "mps2/an521/cpu0": True,  # Cortex-M33 without DSP
    "mps3/corstone300/an547": True,  # Cortex-M55 with MVE
    NATIVE: False,
}
"""The sample runs on every core; in `make test` on those that no other application has."""

OWN_BOARDS = ("qemu_cortex_m3", "mps2/an385", NATIVE)
"""Those of tests/zephyr; the second has memory protection, and flash that Zephyr simulates."""

SAMPLES_WITH_TESTS = ("digits", "mlperf_tiny")
"""The first runs on more boards than its sample.yaml names; Twister only starts the second."""


TOGETHER = ("adapt", "feed", "watch")
"""Those of tests/zephyr whose tests are also in one image, which test_together.py builds."""

LEFT_TO_DEEP = {
    "sample.tinyml.custom_operator": "test_build.py compiles its operator",
    "sample.tinyml.sensor_fusion": "no device, no state: trees are tested on the host and on emulated cores",
    "sample.tinyml.gesture": "gesture.stream is the same with the sensor's FIFO",
    "sample.tinyml.gesture_attention": "the source of gesture; its model runs on the host in test_samples.py",
    "sample.tinyml.gesture_own": "the sensor of gesture; test_together.py learns in Zephyr",
    "sample.tinyml.vibration_own": "the sensor of gesture; thresholds are tested on the host",
    "sample.tinyml.two_models": "its parts: the sensor of gesture, the models of test_memories.py",
    "sample.tinyml.vibration": "the sensor of gesture, a front end as in feed",
    "sample.tinyml.person": "the camera of people, and decisions as in wake_word.slow",
    "sample.tinyml.person.slow": "person, and wake_word.slow",
    "sample.tinyml.wake_word_own": "the microphone of wake_word; test_together.py learns in Zephyr",
    "sample.tinyml.writer.float": "writer, with a model that runs on the host in test_writer.py",
    "sample.tinyml.wake_word": "wake_word.slow is the same with data that are lost",
    "sample.tinyml.model_update": "test_slots.py deploys to it",
    "sample.tinyml.player": "player.slots plays the same model from a slot",
    "sample.tinyml.player.slots": "test_slots.py deploys to it",
    "tinyml.adapt.settings": "test_together.py runs its tests",
    "tinyml.adapt.later": "adapt.settings, and the work queue",
    "tinyml.feed": "test_together.py runs its tests",
    "tinyml.slots.user": "slots, and userspace",
    "tinyml.slots.stream": "slots through the flash map; stream flash is one setting of it",
    "tinyml.watch": "watch.settings is the same with counts that a restart keeps",
    "tinyml.watch.settings": "test_together.py runs its tests",
    "tinyml.threads.exclusive": "threads.check, with another choice of arenas",
    "tinyml.threads.shared": "threads.check is the same with the check of claims",
}
"""What `make test` leaves out, because other tests have its parts."""


@dataclass(frozen=True)
class Pair:
    """An application on a board."""

    folder: Path
    test: str
    board: str
    always: bool = True  # or in `make test-deep` only

    def __str__(self) -> str:
        return f"{self.test} on {self.board}"


def pairs() -> list[Pair]:
    """All pairs. Of most applications one board is in `make test`; which one depends on the name."""
    boards: dict[tuple[Path, str], list[str]] = {}
    for folder, test, board in (*_samples(), *_own()):
        boards.setdefault((folder, test), []).append(board)
    found = [Pair(DIGITS, "sample.tinyml.digits", *entry) for entry in DIGITS_BOARDS.items()]
    for (folder, test), names in boards.items():
        chosen = sorted(names)[zlib.crc32(test.encode()) % len(names)]
        left = test in LEFT_TO_DEEP
        found += [Pair(folder, test, board, board == chosen and not left) for board in names]
    return found


def _samples() -> Iterator[tuple[Path, str, str]]:
    for pair in samples.named():
        if pair.in_suite and pair.sample.name not in SAMPLES_WITH_TESTS:
            yield pair.sample, pair.test, pair.board


def _own() -> Iterator[tuple[Path, str, str]]:
    for path in sorted((ROOT / "tests" / "zephyr").glob("*/testcase.yaml")):
        for test, facts in scenarios(path).items():
            for board in OWN_BOARDS:
                if board in facts["platform_allow"]:
                    yield path.parent, test, board


@cache
def scenarios(path: Path) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]
    return found


def why_not(pair: Pair) -> str | None:
    """Why a pair cannot run in this workspace."""
    monocypher = workspace.location() / "modules" / "crypto" / "monocypher"
    if pair.test.endswith(".signed") and not monocypher.is_dir():
        return "no Monocypher in the workspace (west config manifest.group-filter -- +slots; west update)"
    littlefs = workspace.location() / "modules" / "fs" / "littlefs"
    if pair.test.endswith(".files") and not littlefs.is_dir():
        return "no littlefs in the workspace (west config manifest.group-filter -- +fs; west update)"
    return None


def left_out(wanted: Iterable[Pair], boards: Iterable[str]) -> list[dict[str, list[str] | str]]:
    """What Twister would run on ``boards`` beside the wanted pairs, for its file of quarantined tests."""
    wanted, boards = list(wanted), set(boards)
    runs = {(pair.test, pair.board) for pair in wanted}
    found: list[dict[str, list[str] | str]] = []
    for folder in {pair.folder for pair in wanted} - {DIGITS}:
        (path,) = (folder / name for name in ("sample.yaml", "testcase.yaml") if (folder / name).exists())
        for test, facts in scenarios(path).items():
            for board in sorted(boards.intersection(facts["platform_allow"])):
                if (test, board) not in runs:
                    pattern = {"scenarios": [test], "platforms": [f"{board}(/.*)?"]}
                    found.append({**pattern, "comment": "not in this run"})
    return found
