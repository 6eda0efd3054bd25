# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The micro front end as C: tables for ``runtime/signal/micro_frontend.c``."""

from __future__ import annotations

import numpy as np

from tinyml.base import c
from tinyml.features.micro import tables
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.features.written import Memory, Written
from tinyml.ops.framework.kernel import Record, Table
from tinyml.ops.signal import band_arithmetic, fft_s16


def write(model: str, settings: MicroSettings) -> Written:
    """Tables and memory of the model's front end, all with its prefix."""
    points = settings.fft // 2
    bands = tables.bands(settings)
    smoothing = tables.smoothing(settings)
    constants = {
        "window": tables.window(settings),
        **fft_s16.tables(points),
        "widths": bands.widths.astype(np.uint16),
        "shares": np.stack([bands.falling, bands.rising], -1).astype(np.uint16),
        "gains": tables.gains(settings),
        "curve": band_arithmetic.log_curve(),
    }
    named = {key: Table(f"{model}_frontend_{key}", values) for key, values in constants.items()}
    members = {f".{key}": table.name for key, table in named.items()} | {
        ".window_samples": str(settings.window),
        ".fft": str(settings.fft),
        ".channels": str(settings.channels),
        ".first_bin": str(bands.start),
        ".even_smoothing": str(smoothing.even[0]),
        ".odd_smoothing": str(smoothing.odd[0]),
        ".min_signal": str(smoothing.least),
        ".noise_bits": str(settings.noise_bits),
        ".gain_shift": str(settings.pcan_bits - settings.correction_bits - band_arithmetic.PCAN_SIGNAL_BITS),
        ".log_shift": str(settings.log_shift),
        ".correction_bits": str(settings.correction_bits),
        ".pcan": c.boolean(settings.pcan),
        ".log": c.boolean(settings.log),
    }
    work, noise = f"{model}_frontend_work", f"{model}_frontend_noise"
    return Written(
        headers=["<tinyml/micro_frontend.h>"],
        sources=["signal/micro_frontend.c", "signal/fft_s16.c"],
        tables=list(named.values()),
        records=[Record("struct tinyml_micro_frontend", f"{model}_frontend", members)],
        memory=[
            Memory("uint32_t", work, points, 4 * points, "of the transform"),
            Memory("uint32_t", noise, settings.channels, 4 * settings.channels, "in each band", kept=True),
        ],
        statement=f"tinyml_micro_frontend(&{model}_frontend, {model}_samples, {model}_window.next, {work}, "
        f"{noise}, {model}_row);",
    )
