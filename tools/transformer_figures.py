# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What an int8 transformer in the size of a published one takes: RAM, and instructions on emulated cores.

The weights are random, so the figures say nothing about accuracy. ``tools.page_tables`` writes them into
docs/quantize.md; tests hold their limits.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from tests.support.transformers import KWT_1, Size, transformer
from tinyml import harness, pipeline
from tinyml.cores.machines import MACHINES
from tinyml.ir import Array
from tinyml.passes import PASSES
from tinyml.passes.fuse_attention import fuse_attention
from tinyml.passes.tabulate_functions import tabulate_functions
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import quantize
from tinyml.settings.quantize_request import Request

JOINING = (fuse_attention, tabulate_functions)
"""Without these passes, the matrix of scores and all steps of GELU exist."""

SAMPLES = 4


@dataclass(frozen=True)
class Figures:
    """On one machine."""

    apart_bytes: int  # of RAM, with scores and GELU in parts
    arena_bytes: int
    instructions: int
    macs: int

    @property
    def per_mac(self) -> float:
        return self.instructions / self.macs


def inputs(size: Size) -> Array:
    return np.random.default_rng(1).normal(0, 1, (SAMPLES, size.length, size.features)).astype(np.float32)


def quantized(size: Size = KWT_1) -> bytes:
    """The model file, in int8."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        model, samples = Path(folder, "model.onnx"), Path(folder, "samples.npz")
        model.write_bytes(transformer(size).SerializeToString())
        np.savez(samples, input=inputs(size))
        return quantize(model, Request(samples, method="minmax")).model.SerializeToString()


def compiled(model: bytes, target: str, apart: bool = False) -> Compiled:
    passes = tuple(step for step in PASSES if not (apart and step in JOINING))
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder, patch.object(pipeline, "PASSES", passes):
        path = Path(folder, "model.onnx")
        path.write_bytes(model)
        return compile_model(path, Options("model", target, "portable"))


def figures(model: bytes, machine: str, size: Size = KWT_1) -> Figures:
    target = MACHINES[machine].target.name
    made = compiled(model, target)
    (counted,) = harness.run_files(made.files, machine, [{"input": inputs(size)[:1]}]).instructions or (0,)
    return Figures(
        compiled(model, target, apart=True).summary["arena_bytes"],
        made.summary["arena_bytes"],
        counted,
        sum(layer.op.macs(layer) for layer in made.graph.layers()),
    )
