# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX files that must be refused."""
# ruff: noqa: E501 (one case to a line)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array

Made = tuple[bytes, str]
"""The bytes of a file, and a part of the message."""


def file(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int],
    constants: Mapping[str, Any] | None = None,
    output: Sequence[int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A float model from x to y."""
    graph = helper.make_graph(
        list(nodes),
        "invalid",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
        [
            value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value), name)
            for name, value in (constants or {}).items()
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def one(
    op_type: str, inputs: str, shape: Sequence[int], message: str, constants: Any = None, **attributes: Any
) -> Made:
    """A model of one node."""
    node = helper.make_node(op_type, inputs.split(), ["y"], "node", **attributes)
    return file([node], shape, constants).SerializeToString(), message


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def _operands() -> dict[str, Made]:
    image, conv = [1, 2, 6, 6], {"w": ones(3, 2, 3, 3)}
    short = "one element for each output channel"
    lstm = {"w": ones(1, 12, 2), "r": ones(1, 12, 3)}
    scales = {"s": ones(3), "z": np.zeros(3, np.int8)}
    return {
        **{
            f"quantize_axis_{axis}": one("QuantizeLinear", "x s z", [3, 3], f"axis {axis} is out of range", scales, axis=axis)
            for axis in (2, 7, -3)
        },
        "conv_short_bias": one("Conv", "x w b", image, short, {**conv, "b": ones(2)}),
        "conv_long_bias": one("Conv", "x w b", image, short, {**conv, "b": ones(9)}),
        "conv_channels": one("Conv", "x w", image, "The number of groups must divide the output channels", {"w": ones(3, 5, 3, 3)}),
        "conv_kernel_too_large": one("Conv", "x w", image, "not larger than the input", {"w": ones(3, 2, 9, 9)}),
        "conv_stride_0": one("Conv", "x w", image, "at least 1", conv, strides=[0, 1]),
        "conv_dilation_0": one("Conv", "x w", image, "at least 1", conv, dilations=[0, 1]),
        "conv_negative_pads": one("Conv", "x w", image, "at least 0", conv, pads=[-1, 0, 0, 0]),
        "depthwise_short_bias": one(
            "Conv", "x w b", image, short, {"w": ones(2, 1, 3, 3), "b": ones(1)}, group=2
        ),
        "transpose_short_bias": one(
            "ConvTranspose", "x w b", image, short, {"w": ones(2, 3, 2, 2), "b": ones(1)}
        ),
        "matmul_1x4_9x8": one("MatMul", "x w", [1, 4], "the second is as long as", {"w": ones(9, 8)}),
        "matmul_of_inputs": one("MatMul", "x w", [3, 1, 4], "as long as the second's columns", {"w": ones(3, 9, 8)}),
        "concat_axis_9": one("Concat", "x w", [1, 4], "axis 9", {"w": ones(1, 4)}, axis=9),
        "pool_kernel_0": one("MaxPool", "x", image, "at least 1", kernel_shape=[0, 2]),
        "lstm_weights": one("LSTM", "x w r", [4, 1, 5], "gates * hidden", lstm, hidden_size=3),
        "lstm_bias": one("LSTM", "x w r b", [4, 1, 2], "The bias has", {**lstm, "b": ones(1, 5)}, hidden_size=3),
        "gru_weights": one("GRU", "x w r", [4, 1, 2], "gates * hidden", lstm, hidden_size=3),
        "transpose_axis_twice": one("Transpose", "x", [2, 3], "every axis of the input once", perm=[0, 0]),
        "scatter_updates": one(
            "ScatterND", "x i u", [4, 4], "one slice", {"i": np.array([[1]]), "u": ones(1, 9)}
        ),
        "gather_outside": one("Gather", "x i", [4, 4], "outside", {"i": np.array([7])}),
        "add_shapes": one("Add", "x w", [2, 3], "broadcast to one", {"w": ones(4)}),
        "pow_shapes": one("Pow", "x w", [2, 3], "broadcast to one", {"w": ones(4)}),
        "where_shapes": one("Where", "c x w", [2, 3], "broadcast to one", {"c": np.ones(5, bool), "w": ones(1)}),
        "where_types": one("Where", "c x w", [2, 3], "same element type", {"c": np.ones(1, bool), "w": np.ones(1, np.int8)}),
        "einsum_axes": one("Einsum", "x w", [2, 3], "axis for each letter", {"w": ones(4)}, equation="ab,ab->a"),
        "einsum_extents": one("Einsum", "x w", [2, 3], "axes with the same letter have the same extent", {"w": ones(4, 5)}, equation="ab,bc->ac"),
        "einsum_result": one("Einsum", "x", [2, 3], "each occurs once", equation="ab->aa"),
        "det_not_square": one("Det", "x", [2, 3], "square matrices"),
        "reshape_elements": one("Reshape", "x s", [2, 3], "cannot reshape", {"s": np.array([4, 2])}),
        "pad_value": (
            file([helper.make_node("Cast", ["x"], ["c"], to=TensorProto.INT32),
                  helper.make_node("Pad", ["c", "p", "v"], ["d"]), helper.make_node("Cast", ["d"], ["y"], to=1)],
                 [2, 3], {"p": np.array([0, 1, 0, 1]), "v": np.float32(np.inf)}).SerializeToString(), "The padding value is representable"),
        "resize_nothing": one(
            "Resize", "x e s", [1, 1, 4, 4], "Every output extent is between 1 and", {"e": ones(0), "s": np.array([1, 1, 0, 1.0], np.float32)}
        ),
    }  # fmt: skip


def _narrow() -> dict[str, Made]:
    """Weights of four bits: blocks, scales, zero points and sizes that make no sense."""
    int4, uint8 = np.dtype(ml_dtypes.int4), np.uint8

    def real(message: str, scales: Any, weights: Any = None, zeros: Any = None, **attributes: Any) -> Made:
        given = {"w": np.ones((32, 3), int4) if weights is None else weights, "s": scales}
        given |= {} if zeros is None else {"z": zeros}
        nodes = [
            helper.make_node("DequantizeLinear", list(given), ["r"], "node", **attributes),
            helper.make_node("MatMul", ["x", "r"], ["y"]),
        ]
        made = file(nodes, [1, 32], given)
        made.opset_import[0].version, made.ir_version = 21, 10
        return made.SerializeToString(), message

    def product(message: str, **changes: Any) -> Made:
        operands = {"w": np.ones((3, 2, 16), uint8), "s": ones(6), **changes.pop("operands", {})}
        attributes = {"K": 64, "N": 3, "bits": 4, "block_size": 32, **changes}
        names = ["x", *(name if name in operands else "" for name in ("w", "s", "z", "g"))]
        node = helper.make_node("MatMulNBits", names, ["y"], "node", domain="com.microsoft", **attributes)
        return file([node], [1, 64], operands).SerializeToString(), message

    def rows(message: str, table: Array, scales: Array, **attributes: Any) -> Made:
        node = helper.make_node(
            "GatherBlockQuantized", ["w", "i", "s"], ["y"], "node", domain="com.microsoft", **attributes
        )
        return file([node], [1], {"w": table, "i": np.array([1]), "s": scales}).SerializeToString(), message

    odd = numpy_helper.from_array(np.ones((32, 3), int4), "w")
    odd.raw_data = odd.raw_data[:-1]
    nan = np.array([np.nan, 1, 1], np.float32)
    blocks = {"axis": 0, "block_size": 16}
    return {
        "int4_packed_size": real("has 47 bytes of data, not 48", ones(3), odd, axis=1),
        "int4_scale_0": real("tensor 'w' has a scale that is not a positive number", np.zeros(3, np.float32), axis=1),
        "int4_scale_nan": real("scale that is not a positive number", nan, axis=1),
        "int4_scale_count": real("2 scales and 2 zero points where 3", ones(2), axis=1),
        "int4_block_scale_0": real("scale that is not a positive number", np.zeros((2, 3), np.float32), **blocks),
        "int4_block_count": real("3 scales along axis 0; 32 elements in blocks of 16 need 2", ones(3, 3), **blocks),
        "int4_block_negative": real("blocks of -4 elements", ones(2, 3), axis=0, block_size=-4),
        "int4_block_shape": real("all other extents must be equal", ones(2, 4), **blocks),
        "int4_block_zero_points": real("zero points of shape (1, 3)", ones(2, 3), zeros=np.ones((1, 3), int4), **blocks),
        "int4_zero_point": real("a zero point of 9 for a tensor of type int4", ones(3), zeros=np.full(3, 9, np.int8), axis=1),
        "nbits_block": product("blocks of 24 elements", block_size=24),
        "nbits_small_block": product("a power of 2 of them, at least 16", block_size=8),
        "nbits_bits": product("weights of 3 bits", bits=3),
        "nbits_weights": product("95 bytes of weights; its attributes ask for 96", operands={"w": np.ones(95, uint8)}),
        "nbits_scales": product("5 scales; its attributes ask for 6", operands={"s": ones(5)}),
        "nbits_scale_nan": product("scale that is not a finite number", operands={"s": ones(6) * np.float32(np.inf)}),
        "nbits_zero_points": product("4 bytes of zero points; its attributes ask for 3", operands={"z": np.ones(4, uint8)}),
        "nbits_zero_type": product("zero points of type int8", operands={"z": np.ones(3, np.int8)}),
        "nbits_type": product("weights of type int8", operands={"w": np.ones(96, np.int8)}),
        "nbits_inputs": product("K = 32 and N = 3 for an input of shape (1, 64)", K=32),
        "nbits_huge": product("at most", K=1 << 40, N=1 << 40),
        "nbits_groups": product("group indices (g_idx)", operands={"g": np.zeros(64, np.int32)}),
        "rows_scales": rows("scales of shape (7, 3), not (7, 2)", np.ones((7, 32), int4), ones(7, 3), block_size=16),
        "rows_type": rows("a table of type int8", np.ones((7, 32), np.int8), ones(7, 2), block_size=16),
        "rows_block": rows("blocks of 5 elements", np.ones((7, 32), int4), ones(7, 2), block_size=5),
    }  # fmt: skip


def _body(*inputs: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info
    slices = [value(name, 1, [4]) for name in inputs or "a"]
    return helper.make_graph([helper.make_node("Relu", ["a"], ["b"])], "body", slices, [value("b", 1, [4])])


def _format() -> dict[str, Made]:
    relu = helper.make_node("Relu", ["x"], ["y"], "node")
    add = helper.make_node("Add", ["x", "w"], ["y"], "node")

    def constant(**changes: Any) -> onnx.TensorProto:
        tensor = numpy_helper.from_array(ones(4), "w")
        for name, value in changes.items():
            setattr(tensor, name, value)
        return tensor

    def stretched(extent: int) -> onnx.TensorProto:
        tensor = constant()
        tensor.dims[0] = extent
        return tensor

    name = file([relu], [1, 4]).SerializeToString().replace(b"node", b"n\xff\xfee")
    nul = file([relu], [1, 4]).SerializeToString().replace(b"node", b"n\x00de")
    labels = helper.make_node(
        "LabelEncoder", ["x"], ["y"], "node", domain="ai.onnx.ml", keys_strings=["a\0b"], values_floats=[1.0]
    )
    partitioned = helper.make_node("StatefulPartitionedCall", ["x"], ["y"], "node", config_proto=b"\x08\0")
    wrong = helper.make_node("Softmax", ["x"], ["y"], "node", axis=1.5)
    self_call = helper.make_function(
        "own", "F", ["a"], ["b"], [helper.make_node("F", ["a"], ["b"], domain="own")], [helper.make_opsetid("own", 1)]
    )  # fmt: skip
    call = helper.make_node("F", ["x"], ["y"], "node", domain="own")
    choice = helper.make_node("If", ["w"], ["y"], "node")
    quantise = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]  # fmt: skip

    def scale(value: Any) -> bytes:
        return bytes(
            file(quantise, [1, 4], {"s": np.asarray(value, np.float32), "z": np.int8(0)}).SerializeToString()
        )

    norm = helper.make_node("BatchNormalization", ["x", "w", "w", "w", "w"], ["y", "mean", "var", "m", "v"])
    training = file([norm], [1, 4], {"w": ones(4)})
    training.opset_import[0].version = 9
    silent, doubled, far = (file([relu], [1, 4]) for _ in range(3))
    del silent.graph.output[:]
    doubled.graph.input.append(doubled.graph.input[0])
    far.opset_import[0].version = 2**40
    mel = {"n": np.array(2**30), "r": np.array(16000), "f": np.float32(0), "g": np.float32(8000)}

    return {
        "old_batch_norm_in_training": (training.SerializeToString(), "training mode"),
        "empty": (b"", "the file is empty"),
        "truncated": (file([relu], [1, 4]).SerializeToString()[:20], "is not a model"),
        "data_too_short": (file([add], [1, 4], {"w": constant(raw_data=b"123")}).SerializeToString(), "3 bytes of data, not 16"),
        "huge_constant": (file([add], [1, 4], {"w": stretched(2**40)}).SerializeToString(), "at most"),
        "negative_constant": (file([add], [1, 4], {"w": stretched(-4)}).SerializeToString(), "an extent of -4"),
        "unknown_type": (file([add], [1, 4], {"w": constant(data_type=77)}).SerializeToString(), "unknown type 77"),
        "name_not_utf8": (name, "not UTF-8"),
        "name_with_nul": (nul, "NUL byte"),
        "text_with_nul": (file([labels], [1, 4]).SerializeToString(), "attribute 'keys_strings' has a NUL byte"),
        "binary_attribute_of_an_unknown_operator": (file([partitioned], [1, 4]).SerializeToString(), "export the model again with jit_compile=False"),
        "attribute_type": (file([wrong], [1, 4]).SerializeToString(), "attribute 'axis' is FLOAT, not INT"),
        "recursive_function": (file([call], [1, 4], functions=[self_call]).SerializeToString(), "calls inside calls"),
        "if_without_branches": (file([choice], [1, 4], {"w": np.array(True)}).SerializeToString(), "lacks its attribute"),
        "scale_0": (scale(0), "not a positive number"),
        "scale_negative": (scale(-1), "not a positive number"),
        "scale_nan": (scale(np.nan), "not a positive number"),
        "scale_infinite": (scale(np.inf), "not a positive number"),
        "scale_count": (scale([0.1, 0.2, 0.3]), "broadcast to one"),
        "scan_without_body": (
            file([helper.make_node("Scan", ["x"], ["y"], "node", num_scan_inputs=1)], [1, 4]).SerializeToString(),
            "lacks its attribute"),
        "scan_of_nothing": (
            file([helper.make_node("Scan", ["x"], ["y"], "node", num_scan_inputs=7, body=_body())], [1, 4])
            .SerializeToString(), "Scan"),
        "scan_of_two_lengths": (
            file([helper.make_node("Scan", ["x", "w"], ["y"], "node", num_scan_inputs=2, body=_body("a", "c"))],
                 [3, 4], {"w": ones(2, 4)}).SerializeToString(), "have 3, 2 steps"),
        "computed_twice": (
            file([helper.make_node("Relu", ["x"], ["z"]), helper.make_node("Neg", ["z"], ["y"]),
                  helper.make_node("Abs", ["x"], ["z"])], [1, 4]).SerializeToString(), "two nodes compute 'z'"),
        "no_outputs": (silent.SerializeToString(), "the model has no outputs"),
        "input_twice": (doubled.SerializeToString(), "'x' is the name of several values"),
        "computed_input": (
            file([helper.make_node("Relu", ["x"], ["x"]), helper.make_node("Neg", ["x"], ["y"])], [1, 4])
            .SerializeToString(), "'x' is the name of several values"),
        "computed_constant": (
            file([helper.make_node("Relu", ["x"], ["w"]), add], [1, 4], {"w": ones(4)}).SerializeToString(),
            "'w' is the name of several values"),
        "version_huge": (far.SerializeToString(), "uses version 1,099,511,627,776"),
        "mel_huge": (
            file([helper.make_node("MelWeightMatrix", ["n", "n", "r", "f", "g"], ["m"]),
                  helper.make_node("Add", ["x", "m"], ["y"])], [1], mel).SerializeToString(), "at most"),
        "extra_output": (
            file([helper.make_node("Relu", ["x"], ["z", "more"]), helper.make_node("Add", ["z", "more"], ["y"])],
                 [1, 4]).SerializeToString(), "its output 'more' is not supported"),
        "input_of_0": (file([relu], [0, 4]).SerializeToString(), "extents are 1 or more"),
        "input_of_minus_1": (file([relu], [-1, 4]).SerializeToString(), "extents are 1 or more"),
        "input_huge": (file([relu], [2**31, 2**31]).SerializeToString(), "at most"),
        "output_contradicts": (file([relu], [1, 4], output=[1, 5]).SerializeToString(), "its nodes compute 1x4"),
        "expand_huge": one("Expand", "x e", [1, 1], "at most", {"e": np.array([2**20, 2**20])}),
        "constant_of_huge_shape": (
            file([helper.make_node("ConstantOfShape", ["e"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])],
                 [1, 1], {"e": np.array([2**20, 2**20])}).SerializeToString(), "at most"),
        "tile_huge": one("Tile", "x e", [1, 1], "at most", {"e": np.array([2**20, 2**20])}),
        "pad_huge": one("Pad", "x e", [1, 1], "at most", {"e": np.array([0, 0, 2**20, 2**20])}),
        "resize_huge": one("Resize", "x r s", [1, 1], "at most", {"r": ones(0), "s": np.array([1e6, 1e6], np.float32)}),
        "range_huge": (
            file([helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])],
                 [1], {"a": np.float32(0), "b": np.float32(1e12), "c": np.float32(1)}).SerializeToString(), "at most"),
    }  # fmt: skip


def cases() -> dict[str, Made]:
    """All of them, by name."""
    return {**_operands(), **_narrow(), **_format()}
