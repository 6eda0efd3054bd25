# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Everything at once for a while: the client of the host protocol, somebody at the shell, resets."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from pathlib import Path

from tests.device_races.boards import Board, Terminal
from tests.device_races.client import FILES, Client, Wrong, packs
from tinyml.base.errors import ToolError

PROMPT = "races> "
SHELL_SECONDS = 60.0
COMMANDS = (
    "tinyml list",
    "tinyml info digits",
    "tinyml info stream",
    "tinyml run digits",
    "tinyml run second",
    "tinyml run stream",
    "tinyml profile digits",
    "tinyml profile second",
    "tinyml slot info",
    "tinyml run nothing",
    "tinyml slot confirm",
    "tinyml slot nonsense",
    "races",
)


class Shell:
    """Somebody who types at the shell."""

    def __init__(self, line: Terminal, rng: random.Random) -> None:
        self.line, self.rng = line, rng
        self.done: Counter[str] = Counter()

    def ask(self, command: str) -> str:
        """What the shell answers; waits for its prompt."""
        while self.line.read(0.05):  # what is left of an earlier command
            pass
        self.line.write(b"\x03" + command.encode() + b"\r")  # Ctrl-C: a line that has begun is gone
        said, end = "", time.monotonic() + SHELL_SECONDS
        while time.monotonic() < end:
            said += self.line.read(1).decode(errors="replace")
            plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said)
            _, echo, answer = plain.rpartition(f"{command}\r\n")
            if echo and PROMPT in answer:
                return answer.replace(PROMPT, "")
        raise Wrong(f"the shell does not answer {command!r}: {said[-500:]!r}")

    def step(self, layers: dict[str, set[str]]) -> None:
        command = self.rng.choice(COMMANDS)
        if self.rng.random() < 0.1:
            self.line.write(self.rng.randbytes(20))
        answer = self.ask(command)
        self.done[command] += 1
        if "in use by another thread" in answer or "has profiled meanwhile" in answer:
            return
        if command.startswith("tinyml profile"):
            name = command.split()[-1]
            found = re.findall(r"layer \d+ (\S*): \d+ cycles", answer)
            if not found or set(found) - layers[name]:
                raise Wrong(f"{command}: {answer!r}; the model has {layers[name]}")
        if command == "tinyml list" and not all(f"{name}: arena" in answer for name in FILES):
            raise Wrong(f"{command}: {answer!r}")
        if command.startswith("tinyml run") and "nothing" not in command and " us" not in answer:
            raise Wrong(f"{command}: {answer!r}")
        if command == "races" and not re.search(r"\b0 wrong", answer):
            raise Wrong(f"threads of the firmware: {answer.strip()}")


def campaign(build: Path, board: str, seed: int, steps: int, folder: Path, tell: bool = False) -> str:
    """What is wrong, or nothing."""
    rng = random.Random(seed)
    made = packs(folder, 6)
    device = Board(build, board)
    found: list[str] = []
    try:
        client = Client(device.console, rng, made)
        layers = {
            name: set(re.findall(rf"static void {name}_(\w+)\(", compiled.files[f"{name}.c"]))
            for name, compiled in client.compiled.items()
        }
        typist = Shell(device.shell, random.Random(seed + 1))
        stop = threading.Event()

        def type_on() -> None:
            try:
                while not stop.is_set():
                    typist.step(layers)
            except (Wrong, ToolError, OSError) as error:
                if not stop.is_set():
                    found.append(f"shell: {error}")

        typing = threading.Thread(target=type_on)
        typing.start()
        for number in range(steps):
            if found:
                break
            try:
                did = client.step()
            except Wrong as error:
                found.append(str(error))
                break
            if tell and number % 20 == 19:
                print(f"{number + 1}: {did}", flush=True)
            if rng.random() < 0.03:
                stop.set()
                typing.join()
                device.reset()
                client.link = device.console
                client.again()
                typist.line = device.shell
                stop.clear()
                typing = threading.Thread(target=type_on)
                typing.start()
                client.done["reset"] += 1
        stop.set()
        typing.join()
        found += [
            line.heard[-1500:].decode(errors="replace")
            for line in (device.console, device.shell)
            if b"FATAL ERROR" in line.heard or b"ASSERTION FAIL" in line.heard
        ]
        if not found:
            answer = typist.ask("races").strip()
            found += [] if re.search(r"\b0 wrong", answer) else [f"threads of the firmware: {answer}"]
            if tell:
                print(f"threads: {answer}")
    finally:
        device.close()
    if tell:
        print(
            f"host protocol: {dict(sorted(client.done.items()))}\nshell: {dict(sorted(typist.done.items()))}"
        )
    return "; ".join(found)
