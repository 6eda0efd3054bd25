# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The micro front end as C: tables for ``runtime/signal/micro_frontend.c``."""

from __future__ import annotations

import numpy as np

from tinyml import c
from tinyml.features.micro import fourier, tables
from tinyml.features.micro.settings import MicroSettings
from tinyml.features.written import Memory, Written
from tinyml.ir import Array
from tinyml.kernel import Record, Table


def write(model: str, settings: MicroSettings) -> Written:
    """Tables and memory of the model's front end, all with its prefix."""
    points = settings.fft // 2
    bands = tables.bands(settings)
    even, odd, least = tables.smoothing(settings)
    constants = {
        "window": tables.window(settings),
        "places": np.argsort(fourier.order(points)).astype(np.uint16),
        "turn": words(fourier.twiddles(points)[: max(3 * points // 4, 1)]),
        "separation": words(fourier.separation(points)),
        "widths": bands.widths.astype(np.uint16),
        "shares": np.stack([bands.falling, bands.rising], -1).astype(np.uint16),
        "gains": tables.gains(settings),
        "curve": np.append(tables.log_segments(), np.uint16(0)),
    }
    named = {key: Table(f"{model}_frontend_{key}", values) for key, values in constants.items()}
    members = {f".{key}": table.name for key, table in named.items()} | {
        ".window_samples": str(settings.window),
        ".fft": str(settings.fft),
        ".channels": str(settings.channels),
        ".first_bin": str(bands.start),
        ".even_smoothing": str(even),
        ".odd_smoothing": str(odd),
        ".min_signal": str(least),
        ".noise_bits": str(settings.noise_bits),
        ".gain_shift": str(settings.pcan_bits - settings.correction_bits - tables.PCAN_SIGNAL_BITS),
        ".log_shift": str(settings.log_shift),
        ".correction_bits": str(settings.correction_bits),
        ".pcan": c.boolean(settings.pcan),
        ".log": c.boolean(settings.log),
    }
    work, noise = f"{model}_frontend_work", f"{model}_frontend_noise"
    return Written(
        headers=["<tinyml/micro_frontend.h>"],
        sources=["signal/micro_frontend.c"],
        tables=list(named.values()),
        records=[Record("struct tinyml_micro_frontend", f"{model}_frontend", members)],
        memory=[
            Memory("uint32_t", work, points, 4 * points, "of the transform"),
            Memory("uint32_t", noise, settings.channels, 4 * settings.channels, "in each band", kept=True),
        ],
        statement=f"tinyml_micro_frontend(&{model}_frontend, {model}_samples, {model}_window.next, {work}, "
        f"{noise}, {model}_row);",
    )


def words(pairs: Array) -> Array:
    """Pairs of int16 as words, the first of a pair in the lower half."""
    halves = pairs.astype(np.uint16).astype(np.uint32)
    packed: Array = halves[:, 0] | halves[:, 1] << np.uint32(16)
    return packed
