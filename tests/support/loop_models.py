# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX models with a loop of any number of steps, whose body is no recurrent layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.importers import ModelFile
from tinyml.ir import Array

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WIDTH = 4


def value(name: str, *shape: int, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), outputs.split()[0], **attributes)


def whole(
    loop: onnx.NodeProto,
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Array],
    before: Sequence[onnx.NodeProto] = (),
) -> onnx.ModelProto:
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph([*before, loop], "loops", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights(*shape: int) -> Array:
    return np.random.default_rng(7).normal(0, 0.5, shape).astype(np.float32)


def filter_scan(steps: int, **directions: Any) -> onnx.ModelProto:
    """A Scan with two states, two sequences along different axes, two outputs, and a captured value.

    The states change places in each step, so neither can be computed in the memory of the other.
    """
    body = helper.make_graph(
        [
            node("MatMul", "a w", "turned"),
            node("Add", "turned x", "sum"),
            node("Softsign", "sum", "soft"),
            node("Mul", "soft gain", "b2"),
            node("Identity", "b", "a2"),
            node("Sub", "b2 z", "row"),
            node("Abs", "a", "other"),
        ],
        "body",
        [value("a", 1, WIDTH), value("b", 1, WIDTH), value("x", 1, WIDTH), value("z", 1, WIDTH)],
        [value("a2", 1, WIDTH), value("b2", 1, WIDTH), value("row", 1, WIDTH), value("other", 1, WIDTH)],
    )
    loop = helper.make_node(
        "Scan",
        ["a0", "b0", "xs", "zs"],
        ["an", "bn", "rows", "others"],
        "filter",
        body=body,
        num_scan_inputs=2,
        scan_input_axes=[0, 1],
        scan_output_axes=[0, -1],
        **directions,
    )
    ends = [value("an", 1, WIDTH), value("bn", 1, WIDTH)]
    return whole(
        loop,
        [
            value("a0", 1, WIDTH),
            value("b0", 1, WIDTH),
            value("xs", steps, 1, WIDTH),
            value("zs", 1, steps, WIDTH),
            value("gain", 1, WIDTH),
        ],
        [*ends, value("rows", steps, 1, WIDTH), value("others", 1, WIDTH, steps)],
        {"w": weights(WIDTH, WIDTH)},
    )


def counted_loop(steps: int, last: int | None = None) -> onnx.ModelProto:
    """A Loop that reads row ``i`` of x, passes a value on unchanged, and may end by its condition."""
    ending = [node("Less", "i last", "below"), node("And", "below go", "on")]
    body = helper.make_graph(
        [
            node("Gather", "x i", "taken", axis=0),
            node("MatMul", "h w", "turned"),
            node("Add", "turned taken", "sum"),
            node("Softsign", "sum", "next"),
            node("Mul", "next kept", "shown"),
            node("Identity", "kept", "kept2"),
            *(ending if last is not None else [node("Identity", "go", "on")]),
        ],
        "body",
        [value("i", kind=INT64), value("go", kind=BOOL), value("h", 1, WIDTH), value("kept", 1, WIDTH)],
        [value("on", kind=BOOL), value("next", 1, WIDTH), value("kept2", 1, WIDTH), value("shown", 1, WIDTH)],
    )
    loop = helper.make_node(
        "Loop", ["most", "true", "h0", "gain"], ["y", "kept_y", "rows"], "loop", body=body
    )
    count = steps if last is None else min(steps, last + 1)
    constants = {
        "w": weights(WIDTH, WIDTH),
        "h0": np.zeros((1, WIDTH), np.float32),
        "most": np.asarray(steps),
        "true": np.asarray(True),
        "last": np.asarray(-1 if last is None else last),
    }
    return whole(
        loop,
        [value("x", steps, WIDTH), value("gain", 1, WIDTH)],
        [value("y", 1, WIDTH), value("kept_y", 1, WIDTH), value("rows", count, 1, WIDTH)],
        constants,
    )


def counting_loop() -> onnx.ModelProto:
    """A Loop with as many steps as an input says, of shape (1,)."""
    body = helper.make_graph(
        [node("MatMul", "h w", "turned"), node("Softsign", "turned", "next"), node("Identity", "go", "on")],
        "body",
        [value("i", kind=INT64), value("go", kind=BOOL), value("h", 1, WIDTH)],
        [value("on", kind=BOOL), value("next", 1, WIDTH)],
    )
    loop = helper.make_node("Loop", ["most", "true", "h0"], ["y"], "counting", body=body)
    inputs = [value("h0", 1, WIDTH), value("most", 1, kind=INT64)]
    constants = {"w": weights(WIDTH, WIDTH), "true": np.asarray(True)}
    return whole(loop, inputs, [value("y", 1, WIDTH)], constants)


def choosing_scan(steps: int) -> onnx.ModelProto:
    """A Scan in which an If decides in each turn what happens to the state."""
    then = helper.make_graph(
        [node("MatMul", "h w", "a"), node("Softsign", "a", "chosen_a")],
        "then",
        [],
        [value("chosen_a", 1, WIDTH)],
    )
    other = helper.make_graph(
        [node("Add", "h x", "b"), node("Abs", "b", "chosen_b")], "other", [], [value("chosen_b", 1, WIDTH)]
    )
    body = helper.make_graph(
        [
            node("ReduceMax", "x", "largest", keepdims=0),
            node("Greater", "largest one", "large"),
            helper.make_node("If", ["large"], ["h2"], "if", then_branch=then, else_branch=other),
            node("Neg", "h2", "row"),
        ],
        "body",
        [value("h", 1, WIDTH), value("x", 1, WIDTH)],
        [value("h2", 1, WIDTH), value("row", 1, WIDTH)],
    )
    loop = helper.make_node("Scan", ["h0", "xs"], ["hn", "rows"], "choosing", body=body, num_scan_inputs=1)
    return whole(
        loop,
        [value("h0", 1, WIDTH), value("xs", steps, 1, WIDTH)],
        [value("hn", 1, WIDTH), value("rows", steps, 1, WIDTH)],
        {"w": weights(WIDTH, WIDTH), "one": np.float32(1)},
    )


def settling_loop(steps: int | None, begins: bool = False, rows: bool = False) -> onnx.ModelProto:
    """A Loop that ends when its state is small, after ``steps`` at the latest; ``begins``: or not at all.

    It also counts its turns, and may collect its states.
    """
    body = helper.make_graph(
        [
            node("MatMul", "h w", "turned"),
            node("Softsign", "turned", "next"),
            node("Abs", "next", "size"),
            node("ReduceMax", "size", "largest", keepdims=0),
            node("Greater", "largest small", "on"),
            node("Add", "turns one", "more"),
            *([node("Neg", "next", "row")] if rows else []),
        ],
        "body",
        [value("i", kind=INT64), value("go", kind=BOOL), value("h", 1, WIDTH), value("turns", kind=INT64)],
        [
            value("on", kind=BOOL),
            value("next", 1, WIDTH),
            value("more", kind=INT64),
            *([value("row", 1, WIDTH)] if rows else []),
        ],
    )
    names = ["" if steps is None else "most", "go0" if begins else "", "h0", "zero"]
    results = ["y", "turns_y", *(["rows"] if rows else [])]
    loop = helper.make_node("Loop", names, results, "settling", body=body)
    collected = helper.make_tensor_value_info("rows", FLOAT, ["turns", 1, WIDTH])
    start = [
        node("ReduceMax", "h0", "first", keepdims=0),
        node("Greater", "first nothing", "go0"),
    ]
    return whole(
        loop,
        [value("h0", 1, WIDTH), value("small")],
        [value("y", 1, WIDTH), value("turns_y", kind=INT64), *([collected] if rows else [])],
        {
            "w": weights(WIDTH, WIDTH),
            "most": np.asarray(steps or 0),
            "one": np.asarray(1),
            "zero": np.asarray(0),
            "nothing": np.float32(0),
        },
        start if begins else [],
    )


def idle_loop(steps: int) -> onnx.ModelProto:
    """A Loop with an If that gives its state back either way: nothing is left to do in a turn."""
    same = [
        helper.make_graph([node("Identity", "h", name)], name, [], [value(name, 1, WIDTH)])
        for name in ("then", "other")
    ]
    body = helper.make_graph(
        [
            node("ReduceMax", "h", "largest", keepdims=0),
            node("Less", "largest small", "below"),
            helper.make_node("If", ["below"], ["h2"], "if", then_branch=same[0], else_branch=same[1]),
            node("Identity", "go", "on"),
        ],
        "body",
        [value("i", kind=INT64), value("go", kind=BOOL), value("h", 1, WIDTH)],
        [value("on", kind=BOOL), value("h2", 1, WIDTH)],
    )
    loop = helper.make_node("Loop", ["most", "", "h0"], ["y"], "idle", body=body)
    constants = {"most": np.asarray(steps), "small": np.float32(0)}
    return whole(loop, [value("h0", 1, WIDTH)], [value("y", 1, WIDTH)], constants)


def gated_scan(steps: int, width: int = 8, rows: bool = False) -> onnx.ModelProto:
    """A cell that is no layer that ONNX knows (FastGRNN), and a dense layer of its last state.

    With ``rows`` all states are an output too.
    """
    random = np.random.default_rng(5)
    body = helper.make_graph(
        [
            node("MatMul", "x w", "a"),
            node("MatMul", "h u", "b"),
            node("Add", "a b", "both"),
            node("Add", "both offset", "gate_in"),
            node("Sigmoid", "gate_in", "gate"),
            node("Tanh", "both", "candidate"),
            node("Sub", "one gate", "rest"),
            node("Mul", "rest candidate", "new"),
            node("Mul", "gate h", "old"),
            node("Add", "new old", "h2"),
            *([node("Identity", "h2", "row")] if rows else []),
        ],
        "body",
        [value("h", 1, width), value("x", 1, WIDTH)],
        [value("h2", 1, width), *([value("row", 1, width)] if rows else [])],
    )
    results = ["hn", *(["states"] if rows else [])]
    loop = helper.make_node("Scan", ["h0", "xs"], results, "cell", body=body, num_scan_inputs=1)
    model = whole(
        loop,
        [value("xs", steps, 1, WIDTH)],
        [value("y", 1, 3), *([value("states", steps, 1, width)] if rows else [])],
        {
            "h0": np.zeros((1, width), np.float32),
            "w": random.normal(0, 0.5, (WIDTH, width)).astype(np.float32),
            "u": random.normal(0, 0.3, (width, width)).astype(np.float32),
            "offset": np.full((1, width), 1.5, np.float32),
            "one": np.float32(1),
            "v": random.normal(0, 0.5, (width, 3)).astype(np.float32),
        },
    )
    model.graph.node.append(node("MatMul", "hn v", "y"))
    return model


def picking_loop(steps: int) -> onnx.ModelProto:
    """Places in the state that the state itself and the number of the turn choose; one element at a time."""
    body = helper.make_graph(
        [
            node("MatMul", "h w", "turned"),
            node("TopK", "turned two", "best places"),
            node("ArgMin", "turned", "lowest", axis=1),
            node("GatherElements", "turned lowest", "depth", axis=1),
            node("Mod", "i width", "column"),
            node("Reshape", "column cell", "there"),
            node("ScatterElements", "turned there depth", "scattered", axis=1),
            node("Resize", "best nothing nothing sizes", "wide", mode="nearest"),
            node("Add", "scattered wide", "sum"),
            node("Add", "sum h0", "moved"),
            node("Softsign", "moved", "h2"),
            node("Identity", "go", "on"),
        ],
        "body",
        [value("i", kind=INT64), value("go", kind=BOOL), value("h", 1, WIDTH)],
        [value("on", kind=BOOL), value("h2", 1, WIDTH), value("places", 1, 2, kind=INT64)],
    )
    loop = helper.make_node("Loop", ["most", "", "h0"], ["y", "chosen"], "picking", body=body)
    constants = {
        "w": weights(WIDTH, WIDTH),
        "most": np.asarray(steps),
        "two": np.asarray([2]),
        "width": np.asarray(WIDTH),
        "cell": np.asarray([1, 1]),
        "nothing": np.zeros(0, np.float32),
        "sizes": np.asarray([1, WIDTH]),
    }
    ends = [value("y", 1, WIDTH), value("chosen", steps, 1, 2, kind=INT64)]
    return whole(loop, [value("h0", 1, WIDTH)], ends, constants)


def permitted_loop(steps: int) -> onnx.ModelProto:
    """A Loop that an input of the model permits: all steps, or none."""
    body = helper.make_graph(
        [node("MatMul", "h w", "turned"), node("Softsign", "turned", "next"), node("Identity", "go", "on")],
        "body",
        [value("i", kind=INT64), value("go", kind=BOOL), value("h", 1, WIDTH)],
        [value("on", kind=BOOL), value("next", 1, WIDTH)],
    )
    loop = helper.make_node("Loop", ["most", "permitted", "h0"], ["y"], "permitted_loop", body=body)
    inputs = [value("h0", 1, WIDTH), value("permitted", kind=BOOL)]
    constants = {"w": weights(WIDTH, WIDTH), "most": np.asarray(steps)}
    return whole(loop, inputs, [value("y", 1, WIDTH)], constants)


def settling_scan(steps: int) -> onnx.ModelProto:
    """In each turn of a Scan, a Loop ends when its state is small."""
    inner = helper.make_graph(
        [
            node("MatMul", "k w", "turned"),
            node("Softsign", "turned", "k2"),
            node("Abs", "k2", "size"),
            node("ReduceMax", "size", "largest", keepdims=0),
            node("Greater", "largest small", "on"),
        ],
        "inner",
        [value("i", kind=INT64), value("go", kind=BOOL), value("k", 1, WIDTH)],
        [value("on", kind=BOOL), value("k2", 1, WIDTH)],
    )
    body = helper.make_graph(
        [
            node("Add", "h x", "begin"),
            helper.make_node("Loop", ["most", "", "begin"], ["settled"], "inner", body=inner),
            node("Softsign", "settled", "h2"),
            node("Neg", "h2", "row"),
        ],
        "outer",
        [value("h", 1, WIDTH), value("x", 1, WIDTH)],
        [value("h2", 1, WIDTH), value("row", 1, WIDTH)],
    )
    loop = helper.make_node("Scan", ["h0", "xs"], ["hn", "rows"], "outer", body=body, num_scan_inputs=1)
    return whole(
        loop,
        [value("h0", 1, WIDTH), value("xs", steps, 1, WIDTH)],
        [value("hn", 1, WIDTH), value("rows", steps, 1, WIDTH)],
        {"w": weights(WIDTH, WIDTH), "most": np.asarray(50), "small": np.float32(0.05)},
    )


def recurrent_scan(steps: int) -> onnx.ModelProto:
    """Each turn of a Scan applies a GRU layer to two rows."""
    body = helper.make_graph(
        [
            helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["all", "h2"], "gru", hidden_size=WIDTH),
            node("Squeeze", "all one", "row"),
        ],
        "body",
        [value("h", 1, 1, WIDTH), value("x", 2, 1, WIDTH)],
        [value("h2", 1, 1, WIDTH), value("row", 2, 1, WIDTH)],
    )
    loop = helper.make_node("Scan", ["h0", "xs"], ["hn", "rows"], "scan", body=body, num_scan_inputs=1)
    return whole(
        loop,
        [value("h0", 1, 1, WIDTH), value("xs", steps, 2, 1, WIDTH)],
        [value("hn", 1, 1, WIDTH), value("rows", steps, 2, 1, WIDTH)],
        {"w": weights(1, 3 * WIDTH, WIDTH), "r": weights(1, 3 * WIDTH, WIDTH), "one": np.asarray([1])},
    )


def nested_loop(steps: int, inner_steps: int) -> onnx.ModelProto:
    """Each turn of a Scan runs a Loop."""
    inner = helper.make_graph(
        [
            node("MatMul", "k w", "turned"),
            node("Add", "turned x", "sum"),
            node("Softsign", "sum", "k2"),
            node("Identity", "go", "on"),
        ],
        "inner",
        [value("i", kind=INT64), value("go", kind=BOOL), value("k", 1, WIDTH)],
        [value("on", kind=BOOL), value("k2", 1, WIDTH)],
    )
    body = helper.make_graph(
        [
            helper.make_node("Loop", ["most", "true", "h"], ["turned_h"], "inner", body=inner),
            node("Sub", "turned_h h", "h2"),
            node("Abs", "h2", "row"),
        ],
        "outer",
        [value("h", 1, WIDTH), value("x", 1, WIDTH)],
        [value("h2", 1, WIDTH), value("row", 1, WIDTH)],
    )
    loop = helper.make_node("Scan", ["h0", "xs"], ["hn", "rows"], "outer", body=body, num_scan_inputs=1)
    return whole(
        loop,
        [value("h0", 1, WIDTH), value("xs", steps, 1, WIDTH)],
        [value("hn", 1, WIDTH), value("rows", steps, 1, WIDTH)],
        {"w": weights(WIDTH, WIDTH), "most": np.asarray(inner_steps), "true": np.asarray(True)},
    )


def qdq_scan(steps: int) -> onnx.ModelProto:
    """A Scan whose body is quantised to int8: a dense layer and a sum, with its state in float."""

    def quantized(name: str, scale: str) -> list[onnx.NodeProto]:
        return [
            node("QuantizeLinear", f"{name} {scale} zero", f"{name}_q"),
            node("DequantizeLinear", f"{name}_q {scale} zero", f"{name}_dq"),
        ]

    body = helper.make_graph(
        [
            *quantized("h", "s_h"),
            *quantized("x", "s_x"),
            node("DequantizeLinear", "w_q s_w zero", "w_dq"),
            node("MatMul", "h_dq w_dq", "turned"),
            *quantized("turned", "s_t"),
            node("Add", "turned_dq x_dq", "sum"),
            *quantized("sum", "s_h"),
            node("Identity", "sum_dq", "row"),
        ],
        "body",
        [value("h", 1, WIDTH), value("x", 1, WIDTH)],
        [value("sum_dq", 1, WIDTH), value("row", 1, WIDTH)],
    )
    loop = helper.make_node("Scan", ["h0", "xs"], ["hn", "rows"], "scan", body=body, num_scan_inputs=1)
    scales = {"s_h": 0.03, "s_x": 0.02, "s_w": 0.01, "s_t": 0.04}
    return whole(
        loop,
        [value("h0", 1, WIDTH), value("xs", steps, 1, WIDTH)],
        [value("hn", 1, WIDTH), value("rows", steps, 1, WIDTH)],
        {
            **{name: np.float32(scale) for name, scale in scales.items()},
            "zero": np.int8(0),
            "w_q": np.random.default_rng(3).integers(-50, 51, (WIDTH, WIDTH)).astype(np.int8),
        },
    )


def integer_scan(steps: int, kind: int = TensorProto.UINT8) -> onnx.ModelProto:
    """A Scan on quantised integers: its state, sequence, rows, and a captured value are quantised outside."""
    body = helper.make_graph(
        [
            node("DequantizeLinear", "x s_x z_x", "x_dq"),
            node("DequantizeLinear", "g s_x z_x", "g_dq"),
            node("DequantizeLinear", "h s_h z_h", "h_dq"),
            node("Mul", "x_dq g_dq", "product"),
            node("Add", "product h_dq", "sum"),
            node("Softsign", "sum", "soft"),
            node("QuantizeLinear", "soft s_h z_h", "h2"),
            node("QuantizeLinear", "product s_x z_x", "row"),
        ],
        "body",
        [value("h", 1, WIDTH, kind=kind), value("x", 1, WIDTH, kind=kind)],
        [value("h2", 1, WIDTH, kind=kind), value("row", 1, WIDTH, kind=kind)],
    )
    loop = helper.make_node(
        "Scan", ["h0_q", "xs_q"], ["hn_q", "rows_q"], "scan", body=body, num_scan_inputs=1
    )
    before = [
        node("QuantizeLinear", "h0 s_h z_h", "h0_q"),
        node("QuantizeLinear", "xs s_x z_x", "xs_q"),
        node("QuantizeLinear", "gain s_x z_x", "g"),
    ]
    after = [
        node("DequantizeLinear", "hn_q s_h z_h", "hn"),
        node("DequantizeLinear", "rows_q s_x z_x", "rows"),
    ]
    zero = 128 if kind == TensorProto.UINT8 else 0
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    model = whole(
        loop,
        [value("h0", 1, WIDTH), value("xs", steps, 1, WIDTH), value("gain", 1, WIDTH)],
        [value("hn", 1, WIDTH), value("rows", steps, 1, WIDTH), value("hn_q", 1, WIDTH, kind=kind)],
        {
            "s_x": np.float32(0.0137),
            "z_x": np.asarray(zero - 8, dtype),
            "s_h": np.float32(0.0071),
            "z_h": np.asarray(zero + 3, dtype),
        },
        before,
    )
    model.graph.node.extend(after)
    return model


def file(model: onnx.ModelProto) -> ModelFile:
    onnx.checker.check_model(model)
    return ModelFile(Path("loops.onnx"), model.SerializeToString())


def sample(model: onnx.ModelProto, seed: int = 1) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: np.asarray(random.normal(0, 1, shape), np.float32) for name, shape in shapes.items()}
