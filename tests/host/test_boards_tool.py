# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.boards`: what it finds, and the page it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import boards, workspace


def test_a_hal_comes_from_the_given_folder_or_the_workspace(tmp_path: Path) -> None:
    for folder in ("place/modules/hal/nordic", "place/modules/hal/stm32", "hals/hal_nordic"):
        (tmp_path / folder / "zephyr").mkdir(parents=True)
        (tmp_path / folder / "zephyr" / "module.yml").touch()
    place, hals = tmp_path / "place", tmp_path / "hals"
    assert boards.find_hal("hal_nordic", place, hals) == hals / "hal_nordic"
    assert boards.find_hal("hal_nordic", place, None) == place / "modules" / "hal" / "nordic"
    assert boards.find_hal("hal_stm32", place, hals) == place / "modules" / "hal" / "stm32"
    assert boards.find_hal("hal_rpi_pico", place, hals) is None


def test_boards_without_their_module_are_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / "VERSION").write_text(
        "VERSION_MAJOR = 4\nVERSION_MINOR = 3\nPATCHLEVEL = 1\nEXTRAVERSION =\n"
    )
    monkeypatch.setattr(boards, "PAGE", tmp_path / "BOARDS.md")
    monkeypatch.setattr(workspace, "find", lambda: tmp_path)
    assert boards.main([]) == 0
    page, said = (tmp_path / "BOARDS.md").read_text(), capsys.readouterr().out
    for board, hal in boards.BOARDS.items():
        assert f"{board}: not tried: no module {hal} in the workspace\n" in said
        assert f"| `{board}` |" in page
    assert page.count("not tried") == len(boards.BOARDS)
    assert " | 4.3.1 | " in page


def test_a_board_keeps_its_line_until_it_is_built_again() -> None:
    built = boards.Result("built", "cortex-m4", "on", "30,000", "5,000")
    page = boards.renew("", {"b": boards.line("b", built, "4.3.1", "2026-01-02")})
    page = boards.renew(page, {"a": boards.line("a", boards.Result("failed: x"), "4.3.1", "2026-01-03")})
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert lines == [
        "| `a` |  |  |  |  | failed: x | 4.3.1 | 2026-01-03 |",
        "| `b` | cortex-m4 | on | 30,000 | 5,000 | built | 4.3.1 | 2026-01-02 |",
    ]


def test_the_cause_of_a_failure_has_no_paths() -> None:
    said = "-- Found\n/home/me/app/main.c:3:1: error: unknown | type\nninja: build stopped\n"
    assert boards.reason(said) == "main.c:3:1: error: unknown / type"
