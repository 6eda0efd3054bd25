# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A west build folder: build, rebuild with other generated files, and read the results."""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Timer

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress, silent
from tinyml.harness.zephyr.failures import failure
from tinyml.harness.zephyr.site import Site

MINUTES = 20
_COUNTER = re.compile(r"\[(\d+)/(\d+)\]")
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Build:
    """An image of the model called ``name``."""

    site: Site
    board: str
    app: Path
    folder: Path
    name: str
    progress: Progress = silent

    def make(self, cmake: Sequence[str]) -> None:
        """Run `west build`; a build with the same options is reused."""
        options = ["-GNinja", *cmake]
        stamp = self.app / "options.txt"
        text = "\n".join([self.board, *options])
        same = stamp.is_file() and stamp.read_text(encoding="utf-8") == text
        stamp.write_text(text, encoding="utf-8")
        (self.generated / f"{self.name}.c").unlink(missing_ok=True)  # may be left over from replace_model()
        if same and (self.folder / "build.ninja").is_file():
            self._west(["build", "-d", str(self.folder)])  # with options, west would run CMake again
            return
        words = ["build", "--no-sysbuild", "-p", "always", "-b", self.board, "-d", str(self.folder)]
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
            if "compile" in words and "--depfile" in words:
                start = words.index("compile") + 1
                length = words[start:].index("&&") if "&&" in words[start:] else len(words)
                return words[start : start + length]
        raise ToolError(
            f"ninja does not show the command that compiles {self.name}:\n{done.stdout}{done.stderr}"
        )

    def _west(self, words: Sequence[str]) -> None:
        command = [*self.site.west, *words]
        LOG.debug("in %s: %s", self.site.zephyr, shlex.join(command))
        process = subprocess.Popen(
            command,
            cwd=self.site.zephyr,
            env=self.site.environment(self.board),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        limit = Timer(60 * MINUTES, process.kill)
        limit.start()
        try:
            said = self._read(process)
        except BaseException:  # Ctrl-C too: no build continues without us
            process.kill()
            raise
        finally:
            in_time = limit.is_alive()
            limit.cancel()
            process.wait()
        if not in_time:
            raise ToolError(f"west {words[0]} for {self.board} took more than {MINUTES} minutes")
        if process.returncode:
            raise failure(words[0], self.board, said)

    def _read(self, process: subprocess.Popen[str]) -> str:
        """What the build prints; ninja's counter goes to the progress bar."""
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if counter := _COUNTER.match(line):
                self.progress(f"building for {self.board}", int(counter[1]), int(counter[2]))
        return "".join(lines)
