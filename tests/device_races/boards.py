# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The image of tests/zephyr/races in an emulator, with two lines: the console and the shell's."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
import tty
from pathlib import Path

from tests.zephyr.building import ROOT, run
from tinyml.base.errors import ToolError
from tinyml.harness.links import Link

APPLICATION = ROOT / "tests" / "zephyr" / "races"
NATIVE = "native_sim/native/64"
QEMU = "mps2/an385"
START_SECONDS = 30.0
FLASH = "races_flash.bin"


class Terminal(Link):
    """A pseudo terminal."""

    def __init__(self, name: str) -> None:
        self._file = os.open(name, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._file)
        self.heard = b""  # everything, for the judgement

    def read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self._file], [], [], max(0.0, seconds))
        try:
            data = os.read(self._file, 4096) if ready else b""
        except OSError:
            raise ToolError("the emulator is gone") from None
        self.heard = (self.heard + data)[-20000:]
        return data

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        os.close(self._file)


class Board:
    """A device that runs; ``reset`` restarts it, and its flash keeps its content."""

    def __init__(self, build: Path, board: str) -> None:
        self.build, self.native = build, board == NATIVE
        (build / FLASH).unlink(missing_ok=True)
        self._start()

    def _start(self) -> None:
        flash = f"-flash={self.build / FLASH}"
        native = [str(self.build / "zephyr" / "zephyr.exe"), flash, "-rt"]
        quiet = ["-display", "none", "-monitor", "stdio", "-serial", "pty", "-serial", "pty"]
        image = ["-kernel", str(self.build / "zephyr" / "zephyr.elf")]
        # Time goes on with instructions, however busy the computer is: 62 million a second. With a quarter of
        # that, the threads of the firmware leave no time for the computer and the shell.
        pace = ["-icount", "shift=4,sleep=on"]
        qemu = ["qemu-system-arm", "-machine", "mps2-an385", *pace, *quiet, *image]
        self._process = subprocess.Popen(
            native if self.native else qemu,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        console, shell = self._terminals()
        self.console, self.shell = Terminal(console), Terminal(shell)

    def _terminals(self) -> tuple[str, str]:
        assert self._process.stdout is not None
        said, end = b"", time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if select.select([self._process.stdout], [], [], 0.2)[0]:
                said += os.read(self._process.stdout.fileno(), 4096)
            if len(found := re.findall(rb"(?:pseudotty:|redirected to) (/dev/pts/\d+)", said)) == 2:
                return found[0].decode(), found[1].decode()
        raise ToolError(f"the emulator names no terminals: {said.decode(errors='replace')}")

    def reset(self) -> None:
        if not self.native:
            assert self._process.stdin is not None
            self._process.stdin.write(b"system_reset\n")
            self._process.stdin.flush()
            return
        self.close()
        self._start()

    def close(self) -> None:
        for line in (self.console, self.shell):
            line.close()
        self._process.kill()
        self._process.wait()


def build(board: str, folder: Path) -> Path:
    made = folder / board.replace("/", "_")
    run(["west", "build", "-b", board, "-d", made, APPLICATION], folder)
    return made
