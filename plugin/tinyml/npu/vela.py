# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs Vela, Arm's compiler for Ethos-U, as a program of its own in a private folder."""

from __future__ import annotations

import csv
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.accelerators import system

INSTALL = "pip install 'west-tinyml[npu]', or pip install 'ethos-u-vela>=5.2,<6'"
SECONDS = 600


@dataclass(frozen=True)
class Output:
    """What Vela made of a model: a TFLite file, what it printed, and its estimates by name."""

    model: bytes
    log: str
    estimates: Mapping[str, str]

    @property
    def cycles(self) -> int:
        """Estimated NPU cycles of one run."""
        return round(float(self.estimates.get("cycles_total", 0)))


@dataclass(frozen=True)
class Settings:
    """What Vela compiles for; ``small``: less memory instead of fewer cycles."""

    accelerator: str
    small: bool = False


def require() -> None:
    """Fails if Vela is not installed."""
    try:
        found = importlib.util.find_spec("ethosu.vela")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ToolError("an NPU requires Arm's compiler Vela, which is not installed", INSTALL)


def compile_part(model: bytes, settings: Settings) -> Output:
    """Compile a TFLite file; an error carries the last lines that Vela printed."""
    with tempfile.TemporaryDirectory(prefix="tinyml-vela-") as name:
        folder = Path(name)
        (folder / "part.tflite").write_bytes(model)
        done = _run(folder, settings)
        log = readable(done.stdout)
        result = folder / "out" / "part_vela.tflite"
        if done.returncode or not result.is_file():
            last = [line for line in log.splitlines() if line][-8:] or [f"exit code {done.returncode}"]
            raise ToolError(
                "\n  ".join(["Vela could not compile the model:", *last]), "compile it without npu"
            )
        return Output(result.read_bytes(), log, _estimates(folder / "out"))


def _run(folder: Path, settings: Settings) -> subprocess.CompletedProcess[str]:
    # Inputs and outputs have regions of their own, so that they are wherever our planner puts them.
    command = [sys.executable, "-m", "ethosu.vela", "--accelerator-config", settings.accelerator]
    command += ["--config", "Arm/vela.ini", "--system-config", system(settings.accelerator)]
    command += ["--optimise", "Size" if settings.small else "Performance"]
    command += ["--memory-mode", "Shared_Sram", "--cop-format", "COP2", "--separate-io-regions"]
    command += ["--show-cpu-operations", "--output-dir", "out", "part.tflite"]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"Vela did not finish within {SECONDS} seconds", "try a smaller model") from None


def readable(log: str) -> str:
    """What Vela printed, without control characters."""
    return "\n".join(re.sub(r"[^\x20-\x7e]", " ", line).rstrip() for line in log.splitlines())


_REFUSAL = re.compile(r"operator: (\w+), ofm: '(.*)'\nReason: (.+(?:\n.+)*)")


def refusals(log: str) -> Iterator[tuple[str, str, str]]:
    """The operators that Vela leaves to the CPU: type, name of the output, and the reason in one line."""
    for found in _REFUSAL.finditer(log):
        yield found[1], found[2], " ".join(found[3].split())


def _estimates(folder: Path) -> dict[str, str]:
    for file in sorted(folder.glob("*_summary_*.csv")):
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        if rows:
            return {key: value for key, value in rows[-1].items() if key and value is not None}
    return {}
