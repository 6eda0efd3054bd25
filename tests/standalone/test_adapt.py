# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that learn on emulated cores: the bits of numpy, and what learning costs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.adapting import as_in_numpy, autoencoder, compiled_for

MACHINES = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
LAST = {"kind": "last", "batch": 3, "momentum": 0.9, "decay": 0.1, "rate": 0.01}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_core_learns_the_same_bits(machine: str) -> None:
    as_in_numpy(compiled_for(machine, LAST), machine, count=6, batch=3)


@pytest.mark.parametrize("machine,distance", [("qemu-cortex-m0", "cosine"), ("qemu-riscv32", "euclidean")])
def test_prototypes_too(machine: str, distance: str) -> None:
    as_in_numpy(compiled_for(machine, {"kind": "prototypes", "distance": distance}), machine, count=6)


@pytest.mark.skipif("TINYML_MODELS" not in os.environ, reason="TINYML_MODELS names no published models")
def test_what_keyword_spotting_pays() -> None:
    """On Cortex-M4: 3,400 bytes of RAM for `last`, 1,700 for prototypes, 1,500 and 1,000 bytes of flash."""
    from tools.adapt_figures import costs

    file = Path(os.environ["TINYML_MODELS"]) / "mlperf_kws_int8.tflite"
    last, prototypes = (costs(file, kind, "qemu-cortex-m4") for kind in ("last", "prototypes"))
    assert last.ram_bytes <= 3400
    assert last.flash_bytes <= 1500
    assert last.step_share <= 0.02
    assert prototypes.ram_bytes <= 1700
    assert prototypes.flash_bytes <= 1000


def test_scaled_inputs_too(tmp_path: Path) -> None:
    """On a core without an FPU: what is learnt about inputs and scores, and what scaled inputs give."""
    data = np.random.default_rng(1).integers(-90, 60, (12, 12)).astype(np.int8)
    made = tinyml.quantize(autoencoder(tmp_path), data / np.float32(40), io="int8")
    made.save(tmp_path / "eight.onnx")
    adapt = {"kind": "threshold", "least": 2, "normalize": 3}
    compiled = compiled_for("qemu-cortex-m0", adapt, tmp_path / "eight.onnx")
    as_in_numpy(compiled, "qemu-cortex-m0", count=8, data=data)
