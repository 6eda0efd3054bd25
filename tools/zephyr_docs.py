"""The tables of docs/zephyr.md, from the code: keys of tinyml.yaml and Kconfig symbols.

``python -m tools.zephyr_docs`` writes them; a test compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "zephyr.md"
KCONFIG = ROOT / "zephyr_module" / "Kconfig"


def key_table() -> str:
    """Every key of a model in tinyml.yaml."""
    sys.path.insert(0, str(ROOT / "plugin"))
    from tinyml.app.manifest import KEYS

    rows = [f"| `{key}` | {words[0].upper()}{words[1:]} |" for key, words in KEYS.items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows])


def symbol_table() -> str:
    """Every Kconfig symbol with its prompt and help."""
    rows = []
    for block in re.split(r"(?m)^(?=(?:menu)?config )", KCONFIG.read_text())[1:]:
        name = block.split()[1]
        prompt = re.search(r'(?:bool|int|string) "(.*)"', block)
        text = re.search(r"(?ms)^\thelp\n((?:\t  .*\n|\n)+)", block)
        words = " ".join(text[1].split()) if text else ""
        title = prompt[1] if prompt else ""
        rows.append(f"| `CONFIG_{name}` | {title}. {words}".rstrip() + " |")
    return "\n".join(["| symbol | meaning |", "|---|---|", *rows])


def page(text: str) -> str:
    """The page with its tables renewed."""
    for mark, table in (("keys", key_table()), ("kconfig", symbol_table())):
        text = re.sub(
            rf"(?s)<!-- {mark} -->.*?<!-- /{mark} -->",
            lambda _, mark=mark, table=table: f"<!-- {mark} -->\n{table}\n<!-- /{mark} -->",  # type: ignore[misc]
            text,
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
