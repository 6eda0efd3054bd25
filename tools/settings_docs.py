# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write docs/settings.md and the table of docs/platformio.md from the table of settings.

``python -m tools.settings_docs`` writes them; a test checks that they are up to date.
"""

from __future__ import annotations

import re

from tinyml.projects.platformio.project import OPTIONS, PREFIX
from tinyml.settings import table
from tinyml.settings.setting import CMAKE, COMMAND, INI, PYTHON, YAML
from tinyml.settings.table import Entry
from tools.environment import ROOT

PAGE = ROOT / "docs" / "settings.md"
PLATFORMIO = ROOT / "docs" / "platformio.md"

HEAD = """\
<!-- Written by `python -m tools.settings_docs` from plugin/tinyml/settings/: do not edit. -->
# Settings of a model

Every setting, and how it is written in each place. A model's own setting in `tinyml.yaml` takes precedence
over those of `platformio.ini` and Kconfig, which are for all models; an option of a command takes precedence
over both.

| setting | meaning | command line | tinyml.yaml | CMake | platformio.ini | Python |
|---|---|---|---|---|---|---|
"""


def row(entry: Entry) -> str:
    """One setting. Places where it cannot be written are empty."""
    spellings = {
        COMMAND: entry.flag,
        YAML: f"{entry.name}:",
        CMAKE: entry.keyword,
        INI: f"{PREFIX}{entry.name}",
        PYTHON: f"{entry.name}=",
    }
    places = (f"`{text}`" if place in entry.places else "" for place, text in spellings.items())
    about = f"{entry.about[0].upper()}{entry.about[1:]}".replace("|", "\\|")
    return f"| {entry.name} | {about} | {' | '.join(places)} |"


def page() -> str:
    """The reference page."""
    return HEAD + "".join(f"{row(entry)}\n" for entry in table.settings().values())


def platformio(text: str) -> str:
    """docs/platformio.md with its table updated."""
    rows = "".join(f"| `{PREFIX}{name}` | {about} |\n" for name, about in OPTIONS.items())
    return re.sub(rf"(?m)(^\| `{PREFIX}\w+` \| .* \|\n)+", lambda _: rows, text, count=1)


if __name__ == "__main__":
    PAGE.write_text(page())
    PLATFORMIO.write_text(platformio(PLATFORMIO.read_text()))
