# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders whose file does not say that a present is the next past: the notes and errors say what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tinyml.base.errors import ConfigError, ModelError
from tinyml.importers import ModelFile, read

WIDTH = 4


def value(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(way: str, paired: bool = False) -> ModelFile:
    """``concat``, ``copied`` behind an Identity, ``operator``; or ``padded`` by a constant: no past."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["k"])]
    past, present = value("past", 1, "rows", WIDTH), value("present", 1, "more", WIDTH)
    if way == "operator":
        past, present = value("past", 1, 1, "rows", WIDTH), value("present", 1, 1, "more", WIDTH)
        names = ["x", "k", "k", "", "past", "past"]
        nodes.append(
            helper.make_node("Attention", names, ["y", "present", "again"], q_num_heads=1, kv_num_heads=1)
        )
    else:
        joined = ["past", "row"] if way == "padded" else ["past", "k"]
        result = "joined" if way == "copied" else "present"
        nodes.append(helper.make_node("Concat", joined, [result], axis=1))
        nodes += [
            helper.make_node("Transpose", [result], ["turned"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["x", "turned"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
            helper.make_node("MatMul", ["weights", result], ["y"]),
        ]
        if way == "copied":
            nodes.append(helper.make_node("Identity", ["joined"], ["present"]))
    graph = helper.make_graph(
        nodes,
        "decoder",
        [value("x", 1, "tokens", WIDTH), past],
        [value("y", 1, "tokens", WIDTH), present],
        [
            numpy_helper.from_array(np.eye(WIDTH, dtype=np.float32), "w"),
            numpy_helper.from_array(np.ones((1, 1, WIDTH), np.float32), "row"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    if paired:
        helper.set_model_props(made, {"tinyml.states": '{"past": "present"}'})
    return ModelFile(Path("decoder.onnx"), made.SerializeToString())


def notes(file: ModelFile) -> list[str]:
    return [note for note in read(file).notes if "from run to run" in note]


@pytest.mark.parametrize("way", ["concat", "copied", "operator"])
def test_a_past_that_is_no_state_has_a_note(way: str) -> None:
    (note,) = notes(model(way))
    assert "'present' is the input 'past' and rows of this run" in note
    assert r"""{'tinyml.states': "{\"past\": \"present\"}"}""" in note


def test_the_note_is_followed() -> None:
    file = model("concat", paired=True)
    with pytest.raises(ModelError, match="longest length is not stated"):
        read(file)
    graph = read(file, bounds={"rows": 6})
    assert (1, 6, WIDTH) in [graph.tensors[state.tensor].shape for state in graph.states]


def test_rows_of_a_constant_are_no_past() -> None:
    assert not notes(model("padded"))


@pytest.mark.parametrize("paired", [False, True])
def test_a_length_has_no_bound(paired: bool) -> None:
    with pytest.raises(ConfigError) as raised:
        read(model("operator", paired), bounds={"rows": 6})
    assert "'rows' is a length of the input 'past', which takes a shape and no bound" in str(raised.value)
    assert "--shape past=1x1x?x4 sets it" in str(raised.value.hint)
