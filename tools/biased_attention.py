# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What int8 attention with a bias takes, as one layer and in parts.

The weights are random. ``tools.page_tables`` writes the table into docs/quantize.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

from tests.support.biased_attention import Shape, attention, samples
from tinyml import harness
from tinyml.cores.machines import MACHINES
from tinyml.quantize.engine import quantize
from tinyml.settings.quantize_request import Request
from tools.masked_attention import CORES
from tools.transformer_figures import compiled

SHAPES = {
    "T5, 64 tokens": Shape(64, 4, 16, scaled=False),
    "T5, 128 tokens": Shape(128, 4, 16, scaled=False),
    "T5, 128 tokens, padded": Shape(128, 4, 16, scaled=False, padded=True),
    "Swin": Shape(49, 3, 16, windows=4),
    "Swin, shifted": Shape(49, 3, 16, windows=4, shifted=True),
}


def quantized(shape: Shape) -> bytes:
    """The model file, in int8."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        model, drawn = Path(folder, "model.onnx"), Path(folder, "samples.npz")
        onnx.save(attention(shape), model)
        np.savez(drawn, **samples(shape, 4))  # type: ignore[arg-type]
        return quantize(model, Request(drawn, method="minmax")).model.SerializeToString()


def rows() -> Iterator[str]:
    yield "| attention | core | RAM, in parts | RAM | instructions, in parts | instructions |"
    yield "|---|---|---:|---:|---:|---:|"
    for name, shape in SHAPES.items():
        model = quantized(shape)
        given = {word: array[0] for word, array in samples(shape, 1).items()}
        for title, machine in CORES.items():
            made = [compiled(model, MACHINES[machine].target.name, apart) for apart in (True, False)]
            counts = [each.summary["arena_bytes"] for each in made]
            for each in made:
                counts += harness.run_files(each.files, machine, [given]).instructions or (0,)
            yield f"| {name} | {title} | {' | '.join(f'{count:,}' for count in counts)} |"
