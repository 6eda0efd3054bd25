# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""ESPHome's own schema of audio without its C++, which is for the ESP32 only."""

from pathlib import Path

import esphome

_OWN = Path(esphome.__file__).parent / "components" / "audio" / "__init__.py"
exec(_OWN.read_text().replace("    cv.only_on_esp32,\n", ""))
AUTO_LOAD = []


async def to_code(config):
    """No library of ESP-IDF."""
