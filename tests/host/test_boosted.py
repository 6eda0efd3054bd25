# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models of XGBoost, LightGBM and CatBoost: the C computes the probabilities that the libraries predict.

``tests/support/record_boosted.py`` recorded them. Some converters lose something: then the ONNX file itself
is another model, which nothing in it shows. docs/tutorial_scikit_learn.md warns of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.batch import Item, run_batch
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_graph

RECORDED = Path(__file__).parents[1] / "recorded" / "boosted.npz"

LOST = {
    "xgboost_logistic": "the logistic function of a regressor",
    "lightgbm_forest": "the mean over the trees of a random forest",
    "lightgbm_forest_three": "the mean over the trees of a random forest, and a class",
    "lightgbm_forest_regressor": "the mean over the trees of a random forest",
    "lightgbm_one_against_all": "one logistic function per class",
}
"""What onnxmltools 1.16 loses; its files disagree with the library in onnxruntime, too."""


def recorded() -> dict[str, Array]:
    with np.load(RECORDED) as arrays:
        return dict(arrays)


NAMES = sorted(key.removesuffix("/model") for key in recorded() if key.endswith("/model"))


def compiled_model(name: str, prefix: str) -> Compiled:
    arrays = recorded()
    model = onnx.load_from_string(arrays[f"{name}/model"].tobytes())
    for output in model.graph.output:  # converters declare shapes that their own nodes do not compute
        output.type.tensor_type.ClearField("shape")
    rows = len(arrays["x"])
    graph = onnx_graph.read(model, name, {model.graph.input[0].name: (rows, arrays["x"].shape[1])})
    return compile_graph(graph, prefix, Provenance(name, "0" * 64, ""), Options(target="host"))


def test_probabilities_are_those_of_the_library() -> None:
    arrays = recorded()
    kept = [name for name in NAMES if name not in LOST]
    assert len(kept) >= 16
    items = []
    for number, name in enumerate(kept):
        compiled = compiled_model(name, f"m{number}")
        (input_name,) = compiled.graph.inputs
        items.append(Item(f"m{number}", compiled.files, [{input_name: arrays["x"]}]))
    outcomes = run_batch(items)
    for number, name in enumerate(kept):
        outcome, wanted = outcomes[f"m{number}"], arrays[f"{name}/wanted"]
        assert not outcome.failure, (name, outcome.failure)
        found = list(outcome.outputs[0].values())[-1].reshape(wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", LOST)
def test_what_converters_lose(name: str) -> None:
    """These files are not the model that was trained; if a new recording repairs one, the docs can say so."""
    arrays = recorded()
    try:
        compiled = compiled_model(name, "m")
    except TinymlError:
        return  # the file contradicts itself
    (input_name,) = compiled.graph.inputs
    outcome = run_batch([Item("m", compiled.files, [{input_name: arrays["x"]}])])["m"]
    found, wanted = list(outcome.outputs[0].values())[-1], arrays[f"{name}/wanted"]
    assert found.size != wanted.size or np.abs(found.reshape(wanted.shape) - wanted).max() > 0.05
