# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player may cost (docs/PLAYER_FIGURES.md)."""

from pathlib import Path

from tools.player_figures import ARENA, STATE, TINY, firmware, played

PLAYER_BYTES, ALL_BYTES, RAM_BYTES = 3_500, 20_000, 300
OPENING = 20_000
MORE = 0.01  # instructions of a run


def test_flash_and_ram(models_folder: Path) -> None:
    """Of the player with the kernels of MLPerf Tiny."""
    models = [played(models_folder / file, "cortex-m4") for _, file in TINY]
    kernels = {kernel for model in models for kernel in model.data.kernels}
    found = firmware(kernels)
    parts = {name: found.part(name).flash for name in ("player", "rules", "kernels", "table")}
    assert 0 < parts["player"] <= PLAYER_BYTES
    assert sum(parts.values()) <= ALL_BYTES
    main = found.part("main")
    assert 0 < main.data + main.bss - ARENA - STATE <= RAM_BYTES


def test_opening(models_folder: Path) -> None:
    assert played(models_folder / "mlperf_kws_int8.tflite", "cortex-m4").opening() <= OPENING


def test_calls(models_folder: Path) -> None:
    """Anomaly detection has the shortest run of the models, and so the largest share of calls."""
    compiled, run = played(models_folder / "mlperf_ad_int8.tflite", "cortex-m4").instructions()
    assert run <= compiled * (1 + MORE)
