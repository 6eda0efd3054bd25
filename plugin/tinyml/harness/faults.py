# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages for processor faults."""

from __future__ import annotations

import re

from tinyml.base.errors import ToolError

_CAUSES = {
    0: "an instruction was fetched from protected memory",
    1: "a data access to protected memory",
    3: "a memory protection fault while returning from an exception",
    4: "a memory protection fault while entering an exception: most likely the stack overflowed",
    8: "an instruction was fetched from memory that does not exist",
    9: "a data access to memory that does not exist",
    10: "a data access to memory that does not exist",
    11: "a bus fault while returning from an exception",
    12: "a bus fault while entering an exception: most likely the stack overflowed",
    16: "an instruction this core does not have",
    17: "a jump to code that is not Thumb",
    18: "a broken return from an exception",
    19: "a coprocessor instruction (floating point, vector) that is disabled or missing",
    20: "the stack overflowed",
    24: "an unaligned access",
    25: "a division by zero",
}
"""Bits of Arm's Configurable Fault Status Register."""

_RISCV_CAUSES = {
    0: "a jump to an odd address",
    1: "an instruction was fetched from memory that does not exist",
    2: "an instruction this core does not have",
    3: "a breakpoint",
    4: "an unaligned access",
    5: "a data access to memory that does not exist",
    6: "an unaligned access",
    7: "a data access to memory that does not exist",
}
"""Values of RISC-V's mcause."""

_RISCV_WITH_ADDRESS = (4, 5, 6, 7)

_XTENSA_CAUSES = {
    0: "an instruction this core does not have",
    2: "an instruction was fetched from memory that does not exist",
    3: "a data access to memory that does not exist",
    6: "a division by zero",
    9: "an unaligned access",
    12: "an instruction was fetched from memory that does not exist",
    13: "a data access to memory that does not exist",
    14: "an instruction was fetched from memory that does not exist",
    15: "a data access to memory that does not exist",
    28: "a read of protected memory",
    29: "a write to protected memory",
}
"""Values of Xtensa's EXCCAUSE."""

_XTENSA_WITH_ADDRESS = (3, 9, 13, 15, 28, 29)


def registers(console: str) -> dict[str, int]:
    """What the image's fault handler printed, by register; empty if there was no fault."""
    _, mark, report = console.partition("fault\n")
    if not mark:
        return {}
    return {name: int(value, 16) for name, value in re.findall(r"^(\w+) ([0-9a-f]{8})$", report, re.M)}


def explain(values: dict[str, int], stack_limit: int, symbols: list[tuple[int, str]]) -> str:
    """One line: the cause, and where. ``symbols`` are the image's functions, by rising address."""
    if "mcause" in values:
        causes, has_address = _riscv(values["mcause"])
    elif "exccause" in values:
        causes, has_address = _xtensa(values["exccause"])
    else:
        causes, has_address = _arm(values.get("cfsr", 0))
    if values.get("sp", stack_limit) < stack_limit:
        causes = ["the stack overflowed"]
    if has_address:
        causes.append(f"address 0x{values.get('address', 0):08x}")
    if "pc" in values:
        causes.append(f"in {function_at(values['pc'], symbols)} (0x{values['pc']:08x})")
    return ", ".join(causes)


def _arm(status: int) -> tuple[list[str], bool]:
    """The causes, and whether the fault address register is valid."""
    causes = [text for bit, text in _CAUSES.items() if status >> bit & 1]
    if status == 0:  # Armv6-M has no such register; reading it gives 0
        return ["a fault whose cause this core does not record"], False
    return causes or [f"unknown cause, CFSR 0x{status:08x}"], status & 0x8080 != 0


def _riscv(cause: int) -> tuple[list[str], bool]:
    return [_RISCV_CAUSES.get(cause, f"unknown cause, mcause 0x{cause:08x}")], cause in _RISCV_WITH_ADDRESS


def _xtensa(cause: int) -> tuple[list[str], bool]:
    named = _XTENSA_CAUSES.get(cause, f"unknown cause, EXCCAUSE {cause}")
    return [named], cause in _XTENSA_WITH_ADDRESS


def function_at(address: int, symbols: list[tuple[int, str]]) -> str:
    """The function that contains ``address``."""
    before = [name for start, name in symbols if start & ~1 <= address]
    return before[-1] if before else "unknown code"


_OUTSIDE = re.compile(r"AddressSanitizer: ([\w-]+).*?^(READ|WRITE) of size (\d+)", re.DOTALL | re.MULTILINE)
_FRAME = re.compile(r"#\d+ \S+ in (\w+) \S*?([\w.-]+:\d+)")


def wrong_access(console: str) -> str | None:
    """A report of AddressSanitizer in one sentence, if it is about memory that a layer may not use."""
    found, frames = _OUTSIDE.search(console), _FRAME.findall(console)
    if found is None or not frames:
        return None
    kind, access, size = found.groups()
    (function, place), callers = frames[0], [name for name, _ in frames[1:2]]
    by = f", called by {callers[0]}" if callers else ""
    verb = "reads" if access == "READ" else "writes"
    return (
        f"{function} ({place}{by}) {verb} {size} bytes outside the inputs, outputs and scratch memory of its "
        f"layer (AddressSanitizer: {kind})"
    )


STATUSES = {
    -5: "its constants have changed",
    -19: "the NPU did not complete a part",
    -28: "a layer has more results than its bound: see --bound",
}
"""What a run returns, as <tinyml/tinyml.h> and <tinyml/ethos_u.h> define it."""


def failed_run(name: str, status: int, sample: int) -> ToolError:
    """The error of a run that ended early."""
    reason = f" ({STATUSES[status]})" if status in STATUSES else ""
    return ToolError(f"{name}_run() returned {status} on sample {sample}{reason}")
