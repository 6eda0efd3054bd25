# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Proofs with CBMC: harnesses in C, whose first comment says what they prove and how.

``proves``: sources of the runtime; ``shapes``: of which layers, files or states; ``unwind``: turns of loops;
``variants``: definitions and options, one run for each; ``deep``: too slow for `make test`,
except for the variants in ``quick``. Longer values continue on lines that are indented by three spaces. With
MEMORY among its definitions, a variant proves accesses only, of shapes that are too large for a proof of
their sums. Sources that the harness includes are not compiled beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE

HERE = Path(__file__).parent
PROVED, REFUTED = "VERIFICATION SUCCESSFUL", "VERIFICATION FAILED"
MEMORY = ("--no-signed-overflow-check", "--slice-formula")
PROGRAM = "TINYML_CBMC"
"""The variable that names a CBMC which is not in the path."""


def cbmc() -> str | None:
    return os.environ.get(PROGRAM) or shutil.which("cbmc")


@dataclass(frozen=True)
class Harness:
    """A file of this folder with a main() that calls what is proved."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    def key(self, name: str) -> str:
        """What the first comment says about something; empty if nothing."""
        text = self.path.read_text(encoding="utf-8")
        found = re.search(rf"^ \* {name}: (.*(?:\n \*   .*)*)$", text, re.MULTILINE)
        return " ".join(found[1].replace("\n * ", "").split()) if found else ""

    @property
    def proves(self) -> list[str]:
        return self.key("proves").split(", ")

    @property
    def variants(self) -> list[str]:
        return [text.strip() for text in self.key("variants").split(";")]

    def run(self, variant: str = "", root: Path = RUNTIME_C) -> str:
        """CBMC's answer, with the runtime in ``root``."""
        included = self.path.read_text(encoding="utf-8")
        sources = [root / n for n in self.proves if n.endswith(".c") and f'#include "{n}"' not in included]
        defines = [word if word.startswith("--") else f"-D{word}" for word in variant.split()]
        if "MEMORY" in variant.split():
            defines += MEMORY
        turns = ["--unwind", self.key("unwind")] if self.key("unwind") else []
        return prove([self.path, *sources], [HERE, root], [*defines, *turns])


def harnesses() -> list[Harness]:
    return [Harness(path) for path in sorted(HERE.glob("*.c"))]


def prove(sources: Sequence[Path], includes: Sequence[Path], options: Sequence[str]) -> str:
    """Memory, overflow, shifts and divisions of a program, for whatever its values are."""
    program = cbmc()
    assert program is not None
    paths = [f"-I{path}" for path in (*includes, RUNTIME_INCLUDE)]
    command = [program, "--unwinding-assertions", "--object-bits", "12", *paths, *options, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
