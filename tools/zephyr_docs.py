# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write the tables of the pages on Zephyr from the code: keys of tinyml.yaml and Kconfig symbols.

``python -m tools.zephyr_docs`` writes them; a test checks that they are up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "zephyr_settings.md", ROOT / "docs" / "zephyr_testing.md")
KCONFIG = ROOT / "zephyr_module" / "Kconfig"


def key_table(keys: Mapping[str, str] | None = None) -> str:
    """Every key of a model in tinyml.yaml, or of a part of it."""
    sys.path.insert(0, str(ROOT / "plugin"))
    from tinyml.settings import table

    rows = [f"| `{key}` | {words[0].upper()}{words[1:]} |" for key, words in (keys or table.keys()).items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows])


def evaluate_table() -> str:
    """Every key below ``evaluate:``."""
    sys.path.insert(0, str(ROOT / "plugin"))
    from tinyml.settings.evaluation import KEYS

    return key_table(KEYS)


@dataclass
class Symbol:
    """A Kconfig symbol or choice, as the page shows it."""

    kind: str
    name: str
    prompt: str = ""
    help: list[str] = field(default_factory=list)

    def row(self) -> str:
        name = f"`{self.name}` (choice)" if self.kind == "choice" else f"`CONFIG_{self.name}`"
        return f"| {name} | {' '.join([f'{self.prompt}.', *self.help])} |"


def symbols(text: str) -> list[Symbol]:
    """Every symbol and choice of a Kconfig file, in order. A help text ends where its indentation does."""
    found: list[Symbol] = []
    indent: int | None = None  # of the help text that is being read, once its first line is known
    in_help = False
    for line in text.splitlines():
        words = line.split()
        depth = len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
        if in_help and words:
            indent = depth if indent is None else indent
            if depth >= indent:
                found[-1].help += words
                continue
            in_help = False
        if not words:
            continue
        if words[0] in ("config", "menuconfig", "choice"):
            found.append(Symbol(words[0], words[1]))
        elif words[0] == "help":
            in_help, indent = True, None
        elif words[0] in ("bool", "int", "string", "prompt") and '"' in line:
            found[-1].prompt = line.split('"')[1]
        elif words[0] == "source" and "Kconfig.template.log_config" in line:
            found.append(_log_level(text))
    return found


def _log_level(text: str) -> Symbol:
    """The symbols that Zephyr's template creates for ``module = NAME``."""
    module = re.search(r"(?m)^module = (\w+)$", text)
    assert module, "the template for log levels needs a module's name"
    levels = "OFF, ERR, WRN, INF, DBG or DEFAULT"
    return Symbol("config", f"{module[1]}_LOG_LEVEL_*", f"Log level, with CONFIG_LOG: {levels}")


def symbol_table() -> str:
    """Every Kconfig symbol that can be set, with its prompt and help."""
    rows = [symbol.row() for symbol in symbols(KCONFIG.read_text()) if symbol.prompt]
    return "\n".join(["| symbol | meaning |", "|---|---|", *rows])


def page(text: str) -> str:
    """The page with its tables updated."""
    tables = {"keys": key_table(), "evaluate": evaluate_table(), "kconfig": symbol_table()}
    for mark, table in tables.items():
        text = re.sub(
            rf"(?s)<!-- {mark} -->.*?<!-- /{mark} -->",
            lambda _, mark=mark, table=table: f"<!-- {mark} -->\n{table}\n<!-- /{mark} -->",  # type: ignore[misc]
            text,
        )
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
