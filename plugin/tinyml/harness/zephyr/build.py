# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A west build folder: build, rebuild with other generated files, and read the results."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinyml.errors import BudgetError, ConfigError, TinymlError, ToolError
from tinyml.harness.zephyr.site import Site

SHOWN_LINES = 15
_TROUBLE = re.compile(r"\berror: |\bundefined reference|^CMake Error|^FAILED: |^FATAL ERROR|^ERROR: ")
_DEVICETREE = re.compile(
    r"devicetree error: (.+)|TinyML: ((?:\S+\s+){2,6}?)must\s+name\s+an\s+enabled\s+devicetree\s+node"
)
MINUTES = 20


class DevicetreeError(ToolError):
    """The board's devicetree lacks something that the build requires: ``what``."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message)
        self.what = what


@dataclass(frozen=True)
class Build:
    """An image of the model called ``name``."""

    site: Site
    board: str
    app: Path
    folder: Path
    name: str

    def make(self, cmake: Sequence[str]) -> None:
        """Run `west build`; a build with the same options is reused."""
        options = ["-GNinja", f"-DPROBE_MODEL={self.name}", *cmake]
        stamp = self.app / "options.txt"
        text = "\n".join([self.board, *options])
        same = stamp.is_file() and stamp.read_text(encoding="utf-8") == text
        stamp.write_text(text, encoding="utf-8")
        (self.generated / f"{self.name}.c").unlink(missing_ok=True)  # may be left over from replace_model()
        words = ["build", "--no-sysbuild", "-p", "auto" if same else "always"]
        words += ["-b", self.board, "-d", str(self.folder)]
        self._west([*words, str(self.app), "--", *options])

    def configure(self) -> None:
        """Only CMake: enough for the devicetree and the configuration of an application."""
        words = ["build", "--no-sysbuild", "--cmake-only", "-p", "always"]
        self._west([*words, "-b", self.board, "-d", str(self.folder), str(self.app), "--", "-GNinja"])

    def replace_model(self, files: Mapping[str, str]) -> None:
        """Rebuild with other generated files, unless they are the same."""
        changed = False
        for name, text in files.items():
            place = self.generated / name
            if not place.is_file() or place.read_text(encoding="utf-8") != text:
                place.write_text(text, encoding="utf-8")
                changed = True
        if changed:
            self._west(["build", "-d", str(self.folder)])

    def flash(self) -> None:
        self._west(["flash", "--skip-rebuild", "-d", str(self.folder)])

    @property
    def generated(self) -> Path:
        return self.folder / "tinyml" / self.name

    @cached_property
    def config(self) -> dict[str, str]:
        """The Kconfig symbols of the image."""
        text = (self.folder / "zephyr" / ".config").read_text(encoding="utf-8")
        return dict(re.findall(r'(?m)^(CONFIG_\w+)="?(.*?)"?$', text))

    @property
    def compile_arguments(self) -> list[str]:
        """The arguments with which the build calls `tinyml compile`."""
        asked = ["ninja", "-C", str(self.folder), "-t", "commands", f"tinyml/{self.name}/{self.name}.c"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        for line in reversed(done.stdout.splitlines()):
            words = shlex.split(line)
            if "compile" in words and "tinyml" in words:
                start = words.index("compile") + 1
                length = words[start:].index("&&") if "&&" in words[start:] else len(words)
                return words[start : start + length]
        raise ToolError(
            f"ninja does not show the command that compiles {self.name}:\n{done.stdout}{done.stderr}"
        )

    def _west(self, words: Sequence[str]) -> None:
        command = [*self.site.west, *words]
        try:
            done = subprocess.run(
                command,
                cwd=self.site.zephyr,
                env=self.site.environment(self.board),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=60 * MINUTES,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"west {words[0]} for {self.board} took more than {MINUTES} minutes") from None
        if done.returncode:
            raise _failure(words[0], self.board, done.stdout)


def _failure(verb: str, board: str, said: str) -> TinymlError:
    """The lines of a long log that explain the failure."""
    if "No board named" in said or "Invalid BOARD" in said:
        return ConfigError(f"Zephyr has no board called {board!r}", "`west boards` lists them")
    lines = said.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if _TROUBLE.search(line)), None)
    kept = lines[-SHOWN_LINES:] if first is None else lines[first : first + SHOWN_LINES]
    message = f"west {verb} for {board} failed:\n" + "\n".join(kept)
    if "overflowed by" in said or "will not fit in region" in said or re.search(r"\ballows \d", said):
        return BudgetError(message, "a smaller model, or a board with more memory")
    if found := _DEVICETREE.search(said):
        return DevicetreeError(message, " ".join((found[1] or found[2]).split()))
    return ToolError(message)
