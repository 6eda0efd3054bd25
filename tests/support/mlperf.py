# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Devices under test of MLPerf Tiny on emulators, and its runner, whose repository a setting names."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).parents[2] / "samples" / "mlperf_tiny"
SETTING = "TINYML_MLPERF_TINY"
QEMU = {
    "qemu_cortex_m3": ("lm3s6965evb", "cortex-m3"),
    "mps2/an385": ("mps2-an385", "cortex-m3"),
    "mps3/corstone300/an547": ("mps3-an547", "cortex-m55"),
}
FRAME_MS = 32
THRESHOLD = 115  # of a detection, as in samples/mlperf_tiny/src/streaming.c
PATIENCE_SECONDS = 60


def repository() -> Path | None:
    """A checkout of github.com/mlcommons/tiny."""
    given = os.environ.get(SETTING)
    return Path(given) if given else None


@contextmanager
def emulated(command: Sequence[str | Path]) -> Iterator[str]:
    """Start an emulator that names a pseudo terminal; that name. It runs in a folder that is removed."""
    words = [str(word) for word in command]
    folder = tempfile.TemporaryDirectory(prefix="tinyml-")
    process = subprocess.Popen(
        words,
        cwd=folder.name,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said = ""
        while not (found := re.search(r"(/dev/pts/\d+)", said)):
            line = process.stdout.readline()
            assert line, f"{words[0]} names no terminal: {said}"
            said += line
        yield found[1]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        folder.cleanup()


def on_qemu(board: str, elf: Path) -> list[str | Path]:
    """Time passes with instructions, and idle time at once: it means nothing for a real core."""
    machine, cpu = QEMU[board]
    quiet = ["-display", "none", "-monitor", "none", "-icount", "shift=5,sleep=off"]
    return ["qemu-system-arm", "-M", machine, "-cpu", cpu, *quiet, "-serial", "pty", "-kernel", elf]


class Terminal:
    """A runner of our own: sends commands, returns the lines of the answer without m-ready."""

    def __init__(self, name: str) -> None:
        import tty

        self.file = os.open(name, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.file)
        self.rest = b""
        self._write("name")  # lines of the start are lost if nobody listened yet
        while "m-name-dut" not in "".join(self.answer()):
            pass

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file)

    def send(self, command: str) -> list[str]:
        self._write(command)
        return self.answer()

    def _write(self, command: str) -> None:
        os.write(self.file, command.encode() + b"%")

    def answer(self) -> list[str]:
        end = time.monotonic() + PATIENCE_SECONDS
        while b"m-ready\r\n" not in self.rest:
            assert time.monotonic() < end, f"no answer: {self.rest!r}"
            if select.select([self.file], [], [], 0.2)[0]:
                self.rest += os.read(self.file, 4096)
        answer, _, self.rest = self.rest.partition(b"m-ready\r\n")
        return answer.decode().splitlines()

    def load(self, data: bytes) -> list[str]:
        said = self.send(f"db load {len(data)}")
        for at in range(0, len(data), 31):  # as many as the official runner sends
            said += self.send(f"db {data[at : at + 31].hex()}")
        return said


def wait_for_device(dut: Terminal, seconds: float) -> None:
    """Until so much of its own time has passed."""
    first = _time_us(dut)
    while _time_us(dut) < first + 1e6 * seconds:
        time.sleep(0.05)


def _time_us(dut: Terminal) -> int:
    (line,) = dut.send("timestamp")
    return int(line.removeprefix("m-lap-us-"))


def results(lines: Sequence[str]) -> list[float]:
    found = [match[1] for line in lines if (match := re.fullmatch(r"m-results-\[(.*)\]", line))]
    assert len(found) == 1, lines
    return [float(word) for word in found[0].split(",")]


def write_dataset(folder: Path, model: str, files: Sequence[tuple[bytes, int]], classes: int) -> None:
    """What the runner calls a dataset: files, and y_labels.csv."""
    place = folder / model
    place.mkdir(parents=True)
    lines = []
    for index, (data, label) in enumerate(files):
        (place / f"{index}.bin").write_bytes(data)
        more = [str(len(data)), "512"] if model == "ad01" else []
        lines.append(",".join([f"{index}.bin", str(classes), str(label), *more]))
    (place / "y_labels.csv").write_text("\n".join(lines) + "\n")


def run_official(
    checkout: Path, ports: Sequence[str], mode: str, data: Path, cwd: Path, devices: str = "kws_ic_vww"
) -> tuple[str, list[dict[str, Any]]]:
    """Run MLPerf Tiny's own runner; what it printed, and its results.json."""
    modes = {"a": "accuracy", "p": "performance"}
    runner = checkout.resolve() / "benchmark" / "runner"
    options = [f"--mode={mode}", f"--dataset_path={data}"]
    options += [f"--device_list={runner}/devices_{devices}.yaml"]
    options += [f"--test_script={runner}/tests_{modes[mode]}.yaml"]
    command = [sys.executable, str(SAMPLE / "runner.py"), str(checkout.resolve()), *ports, *options]
    done = subprocess.run(
        command,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    found = sorted(cwd.glob("sessions/*/results.json"))
    assert found, done.stdout
    return done.stdout, json.loads(found[-1].read_text())


class InterfaceBoard:
    """Stands in for the interface board of the streaming wake word, on a pseudo terminal of its own.

    It passes commands on to the device. Its audio is the recording that the device replays, so `play` only
    waits. The detections that a real board reads from a pin, it takes from the activations that the device
    prints. There is no pin to measure the duty cycle with: the one that it reports means nothing.
    """

    def __init__(self, dut: Terminal, seconds: float) -> None:
        import tty

        self.dut, self.seconds = dut, seconds
        self.detections: list[int] = []
        self.frames = 0
        self.end, far = os.openpty()
        tty.setraw(far)
        self.name, self._far = os.ttyname(far), far
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        line = b""
        while byte := os.read(self.end, 1):
            if byte != b"%":
                line += byte
                continue
            said = self._answer(line.decode())
            os.write(self.end, "".join(f"{word}\r\n" for word in said).encode())
            line = b""

    def _answer(self, command: str) -> list[str]:
        verb, _, rest = command.partition(" ")
        if verb == "dut":
            lines = self.dut.send(rest)
            self._listen(lines)
            return ["m-[passed on]", "m-ready", *(f"[dut]: {line}" for line in [*lines, "m-ready"])]
        if verb == "play":
            wait_for_device(self.dut, self.seconds)
        if verb == "print_detections":
            return ["Detection Timestamps (ms)", *(f"{time_ms}," for time_ms in self.detections), "m-ready"]
        if verb == "print_dutycycle":
            starts = [3200 * frame for frame in range(self.frames)]
            stops = [start + 1 for start in starts]
            texts = [",".join(map(str, times)) for times in (starts, stops)]
            return ["Duty cycle start times (s)", texts[0], "Duty cycle stop times (s)", texts[1], "m-ready"]
        return ["m-ready"]

    def _listen(self, lines: Sequence[str]) -> None:
        if found := re.search(r"target activations: \[([^]]*)\]", "".join(lines)):
            scores = [int(word) for word in found[1].split(",") if word]
            heard = [0] + [frame for frame, score in enumerate(scores) if frame and score > THRESHOLD]
            self.detections = [FRAME_MS * (frame + 1) for frame in heard]
            self.frames = len(scores)
