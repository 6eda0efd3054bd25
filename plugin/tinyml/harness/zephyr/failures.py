# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finds the cause of a failed build in its long log."""

from __future__ import annotations

import re

from tinyml.base.errors import BudgetError, ConfigError, TinymlError, ToolError

SHOWN_LINES = 15
_TROUBLE = re.compile(r"\berror: |\bundefined reference|^CMake Error|^FAILED: |^FATAL ERROR|^ERROR: ")
_DEVICETREE = re.compile(
    r"devicetree error: (.+)|TinyML: ((?:\S+\s+){2,6}?)must\s+name\s+an\s+enabled\s+devicetree\s+node"
)
_KCONFIG = re.compile(r"(?m)^warning: (.+)$")
_ABORTED = "Aborting due to Kconfig warnings"
_ABSENT_MODULE = re.compile(r"defined at modules/(\w+)/\S*\) has direct dependencies .*\b0\b with value n")
_ABSENT_INCLUDE = re.compile(r"fatal error: (\S+\.(?:dtsi|h)): No such file")
_VENDOR = re.compile(r"zephyr/boards/(\w+)/")

VENDOR_MODULES = {
    "adi": "hal_adi",
    "ambiq": "hal_ambiq",
    "atmel": "hal_atmel",
    "espressif": "hal_espressif",
    "gd": "hal_gigadevice",
    "infineon": "hal_infineon",
    "microchip": "hal_microchip",
    "nordic": "hal_nordic",
    "nxp": "hal_nxp",
    "raspberrypi": "hal_rpi_pico",
    "renesas": "hal_renesas",
    "silabs": "hal_silabs",
    "st": "hal_stm32",
    "ti": "hal_ti",
    "wch": "hal_wch",
}
"""Vendors by the folder of their boards in Zephyr, and the west project with their drivers."""


class DevicetreeError(ToolError):
    """The board's devicetree lacks something that the build requires: ``what``."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message)
        self.what = what


def failure(verb: str, board: str, said: str) -> TinymlError:
    """The error for a `west build` or `west flash` that printed ``said``."""
    if "No board named" in said or "Invalid BOARD" in said:
        return ConfigError(f"Zephyr has no board called {board!r}", "`west boards` lists them")
    message = f"west {verb} for {board} failed:\n" + "\n".join(_explaining_lines(said))
    if module := _absent_module(said):
        return ToolError(
            f"{message}\nThe workspace does not have {module}, the vendor's drivers for {board}",
            f"add {module} to the projects in the workspace's west.yml (for Zephyr's own manifest as an "
            f"import: to its name-allowlist), then `west update {module}`",
        )
    if "overflowed by" in said or "will not fit in region" in said or re.search(r"\ballows \d", said):
        return BudgetError(message, "a smaller model, or a board with more memory")
    if found := _DEVICETREE.search(said):
        return DevicetreeError(message, " ".join((found[1] or found[2]).split()))
    return ToolError(message)


def _explaining_lines(said: str) -> list[str]:
    if _ABORTED in said:  # which says nothing itself: the warnings before it do
        return [f"Kconfig: {text}" for text in _KCONFIG.findall(said)][:SHOWN_LINES]
    lines = said.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if _TROUBLE.search(line)), None)
    return lines[-SHOWN_LINES:] if first is None else lines[first : first + SHOWN_LINES]


def _absent_module(said: str) -> str | None:
    """The module whose symbols or files are not there, if that is why the build failed."""
    if _ABORTED in said and (found := _ABSENT_MODULE.search(said)):
        return found[1]
    if _ABSENT_INCLUDE.search(said) and (vendor := _VENDOR.search(said)):
        return VENDOR_MODULES.get(vendor[1])
    return None
