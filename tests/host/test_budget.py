# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits on memory: what counts as RAM when a build copies the weights there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tinyml
from tinyml.base.errors import BudgetError, ConfigError
from tinyml.report import budget
from tinyml.verbs.cli import main

SUMMARY = {
    "name": "kws",
    "arena_bytes": 1000,
    "state_bytes": 200,
    "weights_bytes": 300,
    "layers": [
        {"name": "conv1", "live_bytes": 900, "weights_bytes": 300, "macs": 1, "kernel": "conv_s8"},
    ],
}


def test_weights_are_in_flash() -> None:
    budget.check_all(SUMMARY, [budget.parse_limit("ram=1200")])
    with pytest.raises(BudgetError, match="arena and state need 1,200 bytes of RAM, the board allows 1,199"):
        budget.check_all(SUMMARY, [budget.parse_limit("ram=1199,the board")])


def test_weights_in_ram_count_there_and_in_flash() -> None:
    budget.check_all(SUMMARY, [budget.parse_limit("ram=1500")], weights_in_ram=True)
    with pytest.raises(BudgetError, match="arena, state and weights need 1,500 bytes of RAM"):
        budget.check_all(SUMMARY, [budget.parse_limit("ram=1499")], weights_in_ram=True)
    with pytest.raises(BudgetError, match="the weights need 300 bytes of flash"):
        budget.check_all(SUMMARY, [budget.parse_limit("flash=299")], weights_in_ram=True)


FLASH = ("flash=299,the board", "a model with fewer weights, or a board or memory region with more flash")
RAM = (
    "ram=1199,the board",
    "a model with smaller inputs or fewer channels in these layers, or a board or memory region with more "
    "RAM",
)
OWN = (
    "flash=299,the budget of model kws",
    "a model with fewer weights, or a larger budget (the budget of model kws)",
)


@pytest.mark.parametrize("limit, advice", [FLASH, RAM, OWN])
def test_advice_fits_the_limit(limit: str, advice: str) -> None:
    with pytest.raises(BudgetError) as caught:
        budget.check_all(SUMMARY, [budget.parse_limit(limit)])
    assert caught.value.hint == advice


def test_advice_on_weights_in_ram() -> None:
    with pytest.raises(BudgetError) as caught:
        budget.check_all(SUMMARY, [budget.parse_limit("ram=1499,the board")], weights_in_ram=True)
    assert caught.value.hint.startswith(
        "weights in flash (without `weights: ram`), a model with smaller inputs"
    )


def test_long_names_are_short() -> None:
    """TFLite joins the names of the layers that it fused."""
    long = "model/conv1/BatchNorm;model/conv1/Conv2D;" + "model/" * 30 + "relu"
    layers = [{**SUMMARY["layers"][0], "name": long}]  # type: ignore[index]
    with pytest.raises(BudgetError) as caught:
        budget.check_all({**SUMMARY, "layers": layers}, [budget.parse_limit("flash=299")])
    assert f"; most of it: ...{long[-37:]} 300" in str(caught.value)


DIGITS = Path(__file__).parents[2] / "samples" / "digits"


def complaint(capsys: pytest.CaptureFixture[str], model: str, limit: str) -> str:
    """What `compile` says of a model that exceeds a limit."""
    words = ["compile", str(DIGITS / model), "-o", "unused", "--target", "cortex-m4", "--limit", limit]
    assert main(words) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "limit, spelling",
    [("ram=1000", "`--optimize ram`"), ("ram=1000,the board", "`optimize: ram`")],
    ids=["command line", "tinyml.yaml"],
)
def test_settings_that_fit_have_their_price(
    limit: str, spelling: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes are those that the model has with this setting."""
    compiled = tinyml.compile(DIGITS / "model.onnx", target="cortex-m4", optimize="ram")
    needed = compiled.arena_bytes + compiled.state_bytes
    assert needed <= 1000
    assert f"try: {spelling} ({needed:,} bytes, " in complaint(capsys, "model.onnx", limit)


def test_a_float_model_is_priced_in_int8(capsys: pytest.CaptureFixture[str]) -> None:
    said = complaint(capsys, "model_float.onnx", "flash=12000")
    assert "`--quantize CALIBRATION` (" in said
    assert "instead of a float one" not in said


def test_settings_that_add_nothing_are_not_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows need more RAM than `optimize ram` alone, for this model."""
    said = complaint(capsys, "model.onnx", "ram=1000")
    assert "`--optimize ram` (" in said
    assert "--optimize ram --io rows" not in said


def test_nothing_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert "which comes closest of all settings" in complaint(capsys, "model.onnx", "ram=1")


@pytest.mark.parametrize(
    "size,limit",
    [("0x0", "flash=4194304,the board"), ("0x20000", "flash=131072,the code partition")],
    ids=["no partition", "a partition"],
)
def test_the_flash_of_a_board(size: str, limit: str, tmp_path: Path) -> None:
    """Kconfig writes 0x0 for "up to the end of the flash", which is not a partition of no bytes."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake")
    module = Path(__file__).parents[2] / "zephyr_module" / "cmake" / "memory.cmake"
    (tmp_path / "limits.cmake").write_text(
        f"set(CONFIG_XIP y)\nset(CONFIG_FLASH_SIZE 4096)\nset(CONFIG_FLASH_LOAD_SIZE {size})\n"
        f'include({module.as_posix()})\ntinyml_memory_limits(limits "" "")\nmessage(NOTICE "${{limits}}")\n'
    )
    done = subprocess.run(
        [cmake, "-P", tmp_path / "limits.cmake"], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == f"--limit={limit}"


def test_instructions_are_bounded_only_if_they_are_limited() -> None:
    def never() -> int:
        raise AssertionError("nobody asked")

    budget.check_all(SUMMARY, [budget.parse_limit("ram=1200")], instructions=never)
    limits = [budget.parse_limit("instructions=2.5M,the budget of model kws")]
    budget.check_all(SUMMARY, limits, instructions=lambda: 2_500_000)
    with pytest.raises(
        BudgetError, match="a run can take 2,500,001 instructions, the budget of model kws"
    ) as it:
        budget.check_all(SUMMARY, limits, instructions=lambda: 2_500_001)
    assert "a larger budget (the budget of model kws)" in str(it.value.hint)


@pytest.mark.parametrize("text", ["0.5", "1.2345K", "-1", "1G", "", "2 M M"])
def test_a_limit_of_instructions_is_a_count(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a count"):
        budget.parse_limit(f"instructions={text}")
