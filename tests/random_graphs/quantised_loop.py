# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random loops of floats after ``tinyml quantize``, whose report must state what they lost.

The loops are those of ``loop_model``. The choices of the command are drawn too.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.random_graphs.loop_model import loop_model
from tests.random_graphs.recipe import Model, Recipe
from tinyml.importers import ModelFile
from tinyml.ir import Array
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import EXACT
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

CALIBRATION = 6
SAMPLES = 3
Runs = list[dict[str, Array]]


def quantised_loop(recipe: Recipe) -> Model:
    """The samples are among the calibration data."""
    content = loop_model(replace(recipe, kind="loop")).content
    before = onnx.load_from_string(content)
    next(node for node in before.graph.node if node.op_type in ("Loop", "Scan")).name = "loop"
    rng = np.random.default_rng(recipe.steps[0])
    shapes = {x.name: [d.dim_value for d in x.type.tensor_type.shape.dim] for x in before.graph.input}
    data = {name: rng.normal(size=(CALIBRATION, *shape)).astype(np.float32) for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        arrays: dict[str, Any] = data
        np.savez(Path(folder) / "data.npz", **arrays)
        request = Request(Path(folder) / "data.npz", method="minmax", **_choices(rng))
        found = quantize(ModelFile(Path("loop.onnx"), before.SerializeToString()), request)
    rows = [{name: array[row] for name, array in data.items()} for row in range(CALIBRATION)]
    _stated(found, *([Session(one).run(row) for row in rows] for one in (before, found.model)))
    names = [x.name for x in found.model.graph.input]
    samples = [[row[name] for name in names] for row in rows[:SAMPLES]]
    return Model(recipe, found.model.SerializeToString(), samples)


def _choices(rng: np.random.Generator) -> dict[str, Any]:
    """Mostly none; sometimes the loop is of int16 or float, or its weights are float16."""
    drawn = rng.random()
    if drawn < 0.1:
        return {"weights": "float16"}
    return {"int16": ("loop",)} if drawn < 0.2 else {}


def _stated(found: Quantized, before: Runs, after: Runs) -> None:
    """The figures of the report are those of the outputs."""
    report, errors = found.report, []
    for name in before[0]:
        wanted, got = (
            np.stack([run[name].reshape(-1) for run in runs]).astype(float) for runs in (before, after)
        )
        errors.append(float(np.abs(got - wanted).max()))
        noise = np.square(got - wanted).sum()
        moved = np.square(wanted - wanted.mean(axis=0)).sum() * CALIBRATION / (CALIBRATION - 1)
        if noise and moved:
            decibels = min(10 * np.log10(moved / noise), EXACT)
            assert abs(report.outputs[name] - decibels) < 0.05, (name, report.outputs[name], decibels)
    assert abs(report.largest_error - max(errors)) <= 1e-5 + 1e-4 * max(errors), (
        report.largest_error,
        errors,
    )
