# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One network as tools for quantisation write it (tests/support/record_trained.py): right, on integers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.first_sight import Case, Holds, Right
from tinyml.cost.hints import hints
from tinyml.ops.weighted.weighted import Weighted
from tinyml.pipeline import Options, compile_model

FOLDER = Path(__file__).parents[1] / "recorded" / "trained"
AT_RUN_TIME = "keras_int8"
"""Keras quantises activations with the range of each sample, in float."""


def on_integers(file: Path, folder: Path) -> None:
    compiled = compile_model(file, Options("trained", "cortex-m4"))
    layers = [layer for layer in compiled.graph.layers() if isinstance(layer.op, Weighted)]
    assert len(layers) == 2, [layer.op.kind for layer in layers]
    for layer in layers:
        assert layer.input(0).dtype.value == layer.input(1).dtype.value == "int8", layer.op
    assert not [note for note in hints(compiled) if "in float" in note]
    assert compiled.summary["weights_bytes"] <= 1600
    assert compiled.summary["arena_bytes"] <= 576


FILES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".onnx", ".tflite"))
CASES: list[Case] = [
    *(Right(path.stem, path.read_bytes, path.suffix[1:]) for path in FILES),
    *(
        Holds(f"{path.stem}_on_integers", partial(on_integers, path))
        for path in FILES
        if path.stem != AT_RUN_TIME
    ),
]
