# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/measure.md and docs/first_board.md: every command exists and accepts the options shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tinyml import __version__
from tinyml.compare.difference import FLOAT_TOLERANCE
from tinyml.report.facts import SCHEMA
from tinyml.verbs import VERBS
from tinyml.verbs.base import build_parser
from tinyml.verbs.bench import Bench
from tinyml.verbs.verify import EXIT_DIFFERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "measure.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (?:west )?tinyml (.+)$", PAGE, re.MULTILINE)
BOARD_PAGE = (ROOT / "docs" / "first_board.md").read_text(encoding="utf-8")
BOARD_COMMANDS = re.findall(r"^    west tinyml (.+)$", BOARD_PAGE, re.MULTILINE)


def test_there_are_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"report", "verify", "profile", "bench"}
    verbs = [command.split()[0] for command in BOARD_COMMANDS]
    assert verbs == ["doctor", "report", "verify", "profile", "add"]


@pytest.mark.parametrize("command", [*COMMANDS, *BOARD_COMMANDS])
def test_command_is_understood(command: str) -> None:
    parsed = build_parser(VERBS, "tinyml", __version__).parse_args(shlex.split(command))
    assert parsed.verb.name == command.split()[0]


def test_figures_on_the_page() -> None:
    assert f"{EXIT_DIFFERS} they differ" in PAGE
    assert f"within {FLOAT_TOLERANCE:.0e}".replace("e-0", "e-") in PAGE
    assert f'"schema": {SCHEMA}' in PAGE
    parsed = build_parser([Bench()], "tinyml", __version__).parse_args(["bench"])
    assert f"{parsed.tolerance:g} % by default" in PAGE


def test_symbols_on_the_page_exist() -> None:
    kconfig = (ROOT / "zephyr_module" / "Kconfig").read_text(encoding="utf-8")
    for symbol in re.findall(r"CONFIG_(TINYML_\w+)", PAGE):
        assert f"config {symbol}\n" in kconfig
