# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Output of the set-up scripts: one line per step, and a log with details, shown if a step fails."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LOG_TAIL_LINES = 15


class StepError(Exception):
    """A step failed; the message says what happened, ``hint`` what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass
class Step:
    """One line of progress. ``result`` is the text at its end."""

    title: str
    result: str = "done"
    mark: str = "ok"
    _started: float = field(default_factory=time.monotonic)

    def skip(self, reason: str) -> None:
        """The step could not be done; the reason takes the place of the result."""
        self.mark, self.result = "--", reason

    def line(self, mark: str, text: str) -> str:
        return f"[{mark:>2}] {self.title}: {text}"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started


@contextmanager
def step(title: str, doing: str = "checking") -> Iterator[Step]:
    """Show that a step is running (with a clock on a terminal), then its result."""
    current = Step(title)
    finished = threading.Event()
    terminal = sys.stdout.isatty()

    def tick() -> None:
        while not finished.wait(1.0):
            print(f"\r{current.line('..', f'{doing} ({current.seconds:.0f} s)')}", end="", flush=True)

    clock = threading.Thread(target=tick, daemon=True)
    if terminal:
        print(current.line("..", doing), end="", flush=True)
        clock.start()
    try:
        yield current
    except StepError as error:
        current.mark, current.result = "!!", str(error)
        raise
    finally:
        finished.set()
        if terminal:
            clock.join()
            print("\r\033[K", end="")
        took = f" ({current.seconds:.0f} s)" if current.seconds >= 1 else ""
        print(current.line(current.mark, current.result + took), flush=True)


def run_logged(
    command: Sequence[str],
    log: Path,
    hint: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a command with its output in ``log``; on failure raise with the end of that log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream:
        stream.write(f"$ {' '.join(command)}\n")
        stream.flush()
        try:
            code = subprocess.run(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        except FileNotFoundError:
            raise StepError(f"{command[0]} is not installed", hint) from None
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        raise StepError(f"{Path(command[0]).name} failed with code {code}", f"{hint}\n{tail}\n(log: {log})")
