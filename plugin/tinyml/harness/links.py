# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Connections to a board's console: an emulator's pipes, native_sim's pseudo terminal, a serial port."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError, ToolError

START_SECONDS = 20


class Link(ABC):
    """Bytes to and from a console."""

    @abstractmethod
    def read(self, seconds: float) -> bytes:
        """Bytes that have arrived or arrive within ``seconds``; empty if none do."""

    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Program(Link):
    """A program that emulates the board, with all the processes it starts.

    ``multiplexed``: its input is also that of QEMU's monitor, for which Ctrl-A is a prefix.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        multiplexed: bool = False,
    ) -> None:
        self.multiplexed = multiplexed
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its child processes end with it
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._writer = self.process.stdin.fileno()
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._listen(self.process.stdout.fileno())

    def _listen(self, reader: int) -> None:
        threading.Thread(target=self._pump, args=(reader,), daemon=True).start()

    def _pump(self, reader: int) -> None:
        with contextlib.suppress(OSError):  # a pseudo terminal whose other end is gone
            while data := os.read(reader, 4096):
                self._came.put(data)
        self._came.put(b"")

    def read(self, seconds: float) -> bytes:
        try:
            data = self._came.get(timeout=seconds)
        except queue.Empty:
            return b""
        if not data:
            raise ToolError("the emulator exited unexpectedly", "run `west build -t run` to see why")
        return data

    def write(self, data: bytes) -> None:
        if self.multiplexed:
            data = data.replace(b"\1", b"\1\1")
        try:
            while data:
                data = data[os.write(self._writer, data) :]
        except OSError as error:
            raise ToolError(f"the emulator does not accept input: {error.strerror}") from None

    def close(self) -> None:
        if sys.platform == "win32":
            self.process.kill()  # there are no groups of processes to signal
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class NativeSim(Program):
    """native_sim: an ordinary program, whose UART is a pseudo terminal that it names."""

    def __init__(self, image: Path) -> None:
        self._terminal = -1
        if sys.platform == "win32":
            raise ToolError("native_sim does not run on Windows", "use a board that QEMU emulates")
        import tty

        super().__init__([str(image)], image.parent, os.environ)
        try:
            name = self._terminal_name()
            self._terminal = os.open(name, os.O_RDWR | os.O_NOCTTY)
            tty.setraw(self._terminal)  # the default mode hands over whole lines only
        except BaseException:
            self.close()
            raise
        self._writer = self._terminal
        self._listen(self._terminal)

    def _terminal_name(self) -> str:
        said, end = b"", time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            said += self.read(0.2)
            if found := re.search(rb"pseudotty: (\S+)\s", said):
                return found[1].decode()
        raise ToolError(f"native_sim does not name its serial port:\n{said.decode(errors='replace')}")

    def close(self) -> None:
        super().close()
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1


class MissingPortError(ConfigError):
    """The serial port does not exist, or not yet if the image provides it."""


class SerialPort(Link):
    """Hardware, or a pyserial URL such as socket://HOST:PORT.

    A USB console appears when the image starts: ``patience_seconds`` limits the wait. No other program may
    have the port, which would take some of the answers.
    """

    def __init__(self, name: str, baud: int, patience_seconds: float = 0) -> None:
        try:
            import serial
        except ImportError:
            raise ToolError("pyserial is not installed", "pip install 'west-tinyml[serial]'") from None
        self._errors: tuple[Any, ...] = (serial.SerialException, OSError)
        end = time.monotonic() + patience_seconds
        while True:
            try:
                self._port = serial.serial_for_url(name, baud, timeout=0.1, write_timeout=5, exclusive=True)
                break
            except ValueError as error:
                raise ConfigError(f"{name} cannot be used at {baud} baud: {error}") from None
            except self._errors as error:
                if time.monotonic() > end:
                    raise _unopened(name, error) from None
            time.sleep(0.1)
        self.name = name

    def read(self, seconds: float) -> bytes:
        try:
            self._port.timeout = seconds
            first: bytes = self._port.read(1)
            return first + self._port.read(self._port.in_waiting) if first else b""
        except self._errors as error:
            raise ToolError(f"the serial port {self.name} is gone: {error}") from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._errors as error:
            raise ToolError(f"the serial port {self.name} does not accept data: {error}") from None

    def close(self) -> None:
        self._port.close()


def _unopened(name: str, error: Any) -> ConfigError:
    from serial.tools import list_ports

    ports = f"ports here: {', '.join(port.device for port in list_ports.comports()) or 'none'}"
    if error.errno == errno.ENOENT or "FileNotFoundError" in str(error):  # Windows reports it only as text
        return MissingPortError(f"there is no serial port {name}", ports)
    if "exclusively lock" in str(error):
        return ConfigError(f"another program uses the serial port {name}", "close it: a terminal, a monitor")
    reason = os.strerror(error.errno) if error.errno else error
    return ConfigError(f"cannot open the serial port {name}: {reason}", ports)
