# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The page about Zephyr agrees with the code."""

from __future__ import annotations

import re

from tools import zephyr_docs


def test_the_tables_are_those_of_the_code() -> None:
    texts = [path.read_text(encoding="utf-8") for path in zephyr_docs.PAGES]
    for text in texts:
        assert text == zephyr_docs.page(text), "run python -m tools.zephyr_docs"
    for mark in ("keys", "evaluate", "kconfig"):
        assert sum(f"<!-- {mark} -->" in text for text in texts) == 1


def test_every_key_and_symbol_is_in_the_tables() -> None:
    assert "| `file` | The model file" in zephyr_docs.key_table()
    prompted = re.findall(
        r'(?m)^(?:menu)?config (\w+)\n\t(?:bool|int) "(.*)"$', zephyr_docs.KCONFIG.read_text()
    )
    assert len(prompted) > 10
    table = zephyr_docs.symbol_table()
    assert all(f"| `CONFIG_{symbol}` | {prompt}. " in table for symbol, prompt in prompted)


KCONFIG = """
menuconfig SWITCH
        bool "A switch"
        help
          First line,

          second paragraph.

if SWITCH

choice WAY
        prompt "Which way"
        default LEFT
        help
          Decide.

config LEFT
        bool "Left"
        help
          No
            indentation ends here.
        depends on SWITCH

config RIGHT
        bool "Right"

endchoice

endif # SWITCH
"""


def test_a_help_text_ends_with_its_indentation() -> None:
    rows = [symbol.row() for symbol in zephyr_docs.symbols(KCONFIG)]
    assert rows == [
        "| `CONFIG_SWITCH` | A switch. First line, second paragraph. |",
        "| `WAY` (choice) | Which way. Decide. |",
        "| `CONFIG_LEFT` | Left. No indentation ends here. |",
        "| `CONFIG_RIGHT` | Right. |",
    ]
