# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO board as the compiler sees it: a target, and memory limits.

Board manifests name the processor in different ways: Cortex-M boards have ``build.cpu``, most
RISC-V boards ``build.march``, Espressif's and AVR boards only ``build.mcu``.
"""

from __future__ import annotations

import re

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import TARGETS

# Cores that run another core's code; the compiler does not use their additional features.
_LIKE = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m0+": "cortex-m0",
    "cortex-m1": "cortex-m0",
    "cortex-m23": "cortex-m0",
    "cortex-m35p": "cortex-m33",
    "cortex-m52": "cortex-m55",
}
_RISCV_MCU = re.compile(r"esp32-?(c|h|p)\d+|.*-riscv")  # the RP2350 has both kinds of cores
_AVR_MCU = re.compile(r"at(mega|tiny|xmega|90)\w+|avr\d+\w+")


@dataclass(frozen=True)
class Board:
    """What PlatformIO knows about the board; empty for the host."""

    cpu: str = ""
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    mcu: str = ""
    march: str = ""

    @property
    def target(self) -> str:
        """The compiler's target; every processor with 32 bits or more can run plain C."""
        cpu, mcu, march = self.cpu.lower(), self.mcu.lower(), self.march.lower()
        if _AVR_MCU.fullmatch(mcu):
            raise ConfigError(
                f"the board's processor, {self.mcu}, is an 8-bit AVR; models require 32 bits or more",
                "a board with Cortex-M, RISC-V or Xtensa, or an environment without this library",
            )
        if march.startswith("rv32") or _RISCV_MCU.fullmatch(mcu):
            return "riscv32"
        if core := re.match(r"cortex-m\d+(plus|p|\+)?", cpu):
            name = _LIKE.get(core[0], core[0])
            return name if name in TARGETS else "generic"
        return "generic" if cpu or mcu or march else "host"
