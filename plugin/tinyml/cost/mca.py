# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Blocks weighed by llvm-mca, which knows the pipelines of cores that Arm does not describe in tables."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.cost.cost_tables import Weight
from tinyml.cost.instructions import Instruction, Kind

NEWEST, OLDEST = 30, 19
"""Versions of LLVM. Older ones accept the names of these cores, but have no pipelines for them."""

FALLBACK = 1.3
"""Cycles per instruction of a block that llvm-mca cannot read."""

TAKEN = {"cortex-m7": 1.0, "cortex-m55": 2.0}
"""Guesses: what a taken branch costs on average, predicted or not. Hardware loops cost nothing."""

_FEW, _MANY = 4, 8
_LEFT_OUT = frozenset((Kind.LOOP, Kind.TABLE_BRANCH))


@cache
def find() -> str | None:
    """The newest llvm-mca here, if it is new enough; Debian's have their version in the name."""
    names = (*(f"llvm-mca-{version}" for version in range(NEWEST, OLDEST - 1, -1)), "llvm-mca")
    found = next((found for name in names if (found := shutil.which(name))), None)
    return found if found and _version(found) >= OLDEST else None


def _version(program: str) -> int:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"LLVM version (\d+)", done.stdout)
    return int(match.group(1)) if match else 0


@cache
def knows(core: str) -> bool:
    """Whether it is here and has a model of this core's pipeline."""
    program = find()
    if program is None:
        return False
    done = _run(program, core, "nop\n", _FEW)
    return done.returncode == 0 and "not a recognized processor" not in done.stderr


def disassembly(image: Path, core: str) -> str:
    """The code of an image as LLVM prints it, so that LLVM can read it."""
    program = Path(str(find()))
    dump = program.with_name(program.name.replace("llvm-mca", "llvm-objdump"))
    command = [str(dump), "-d", "--no-show-raw-insn", f"--mcpu={core}", str(image)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        raise ToolError(f"{dump.name} cannot disassemble") from None


def weigh(blocks: Sequence[Sequence[Instruction]], core: str) -> list[Weight]:
    """Each block in an endless loop."""
    program = find()
    assert program is not None
    texts = [[_text(instruction) for instruction in block] for block in blocks]
    few, many = _cycles(program, core, texts, _FEW), _cycles(program, core, texts, _MANY)
    weights = []
    for index, block in enumerate(blocks):
        if index in few and index in many:
            cycles = (many[index] - few[index]) / (_MANY - _FEW)
        else:
            cycles = FALLBACK * len(block)
        jumps = block[-1].kind in (Kind.BRANCH, Kind.TABLE_BRANCH)
        weights.append(Weight(cycles, TAKEN[core] if jumps else 0))
    return weights


def _text(instruction: Instruction) -> str:
    """What the assembler takes for it; addresses become a symbol."""
    if instruction.kind in _LEFT_OUT:
        return ""
    if instruction.kind is Kind.BRANCH and instruction.name.startswith(("bl", "bx")):
        return "b somewhere"  # a call would count as a hundred cycles
    operands = re.sub(r"\b(0x)?[0-9a-f]+ <[^>]*>", "somewhere", instruction.operands)
    return f"{instruction.name} {operands}"


def _cycles(program: str, core: str, texts: list[list[str]], iterations: int) -> dict[int, int]:
    """Cycles by index. Lines that its assembler does not take are left out."""
    lines: list[str] = []
    for index, text in enumerate(texts):
        lines += [f"@ LLVM-MCA-BEGIN b{index}", *text, "@ LLVM-MCA-END"]
    done = _run(program, core, "\n".join(lines) + "\n", iterations)
    wrong = {int(number) for number in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.MULTILINE)}
    if wrong:
        kept = ["" if number in wrong else line for number, line in enumerate(lines, 1)]
        done = _run(program, core, "\n".join(kept) + "\n", iterations)
    return dict(_totals(done.stdout))


def _totals(printed: str) -> Iterable[tuple[int, int]]:
    for part in re.split(r"^\[\d+\] Code Region", printed, flags=re.MULTILINE)[1:]:
        name = re.match(r" - b(\d+)", part)
        total = re.search(r"Total Cycles:\s+(\d+)", part)
        if name and total:
            yield int(name.group(1)), int(total.group(1))


@cache
def _tolerance(program: str) -> tuple[str, ...]:
    """The option that passes over instructions without a model (IT on the Cortex-M7), where it exists."""
    printed = subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
    option = "-skip-unsupported-instructions"
    return (f"{option}=lack-sched",) if option in printed else ()


def _run(program: str, core: str, text: str, iterations: int) -> subprocess.CompletedProcess[str]:
    architecture = "thumbv8.1m.main" if core == "cortex-m55" else "thumbv7em"
    return subprocess.run(
        [
            *(program, f"-mtriple={architecture}-none-eabi", f"-mcpu={core}"),
            *(f"-iterations={iterations}", "-resource-pressure=false", "-instruction-info=false"),
            *_tolerance(program),
        ],
        input=f".syntax unified; .thumb; {text}",
        capture_output=True,
        text=True,
        check=False,
    )
