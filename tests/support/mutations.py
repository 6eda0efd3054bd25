# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files with something wrong: bytes changed anywhere, and ONNX models changed in one message."""

from __future__ import annotations

import random
from typing import Any

import onnx
from onnx import helper

NUMBERS = (-(2**63), -(2**31), -129, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 127, 128, 255, 256, 1000, 65536)
HUGE = (2**20, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 3e38, -3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "y", "*/ int evil; /*", '"; //', "a\nb", "NOTSET", "SAME_UPPER", "linear", "é", "A" * 300)


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """One to four changes anywhere; words are aligned, as those of a flatbuffer are."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        place = rng.randrange(len(data))
        match rng.randrange(8):
            case 0:
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                data[place] = rng.choice((0, 1, 2, 3, 4, 127, 128, 254, 255))
            case 2:
                del data[place : place + rng.randint(1, 16)]
            case 3:
                data[place:place] = rng.randbytes(rng.randint(1, 16))
            case 4:
                data[place:] = b""
            case 5:
                start = rng.randrange(len(data))
                data[place:place] = data[start : start + rng.randint(1, 64)]
            case _:
                word = place - place % 4
                value = rng.choice((*NUMBERS, *HUGE)) & 0xFFFFFFFF
                data[word : word + 4] = value.to_bytes(4, "little")
    return bytes(data)


def changed_onnx(content: bytes, rng: random.Random) -> bytes:
    """A model with one to three of its parts replaced by something else."""
    model = onnx.ModelProto()
    model.ParseFromString(content)
    for _ in range(rng.randint(1, 3)):
        _change(model, rng)
    return model.SerializeToString()


def _change(model: onnx.ModelProto, rng: random.Random) -> None:
    graph = model.graph
    nodes, constants = list(graph.node), list(graph.initializer)
    values = [*graph.input, *graph.output]
    match rng.randrange(9):
        case 0 if constants:
            _change_constant(rng.choice(constants), rng)
        case 1 if constants:
            tensor = rng.choice(constants)
            tensor.CopyFrom(_constant(tensor.name, rng))
        case 2 if values:
            dims = rng.choice(values).type.tensor_type.shape.dim
            if dims:
                rng.choice(dims).dim_value = _number(rng)
        case 3 if values:
            rng.choice(values).type.tensor_type.elem_type = rng.randrange(26)
        case 4 if nodes:
            node, other = rng.choice(nodes), rng.choice(nodes)
            names = [name for n in nodes for name in (*n.input, *n.output)] + [t.name for t in constants]
            if node.input and names:
                node.input[rng.randrange(len(node.input))] = rng.choice([*names, "", "nothing"])
            if rng.random() < 0.2:
                node.op_type = other.op_type
        case 5 if nodes:
            node = rng.choice(nodes)
            if node.attribute:
                _change_attribute(rng.choice(node.attribute), rng)
        case 6 if nodes:
            node = rng.choice(nodes)
            if node.input and rng.random() < 0.5:
                del node.input[rng.randrange(len(node.input))]
            elif node.attribute:
                del node.attribute[rng.randrange(len(node.attribute))]
        case 7:
            for opset in model.opset_import:
                opset.version = rng.choice((0, 1, 7, 9, 11, 13, 17, 21, 99))
        case _ if nodes:
            rng.choice(nodes).name = rng.choice(TEXTS)


def _number(rng: random.Random) -> int:
    return rng.choice(NUMBERS if rng.random() < 0.8 else HUGE)


def _change_constant(tensor: onnx.TensorProto, rng: random.Random) -> None:
    match rng.randrange(4):
        case 0 if tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = _number(rng)
        case 1:
            tensor.data_type = rng.randrange(26)
        case 2:
            tensor.raw_data = changed_bytes(tensor.raw_data, rng)
        case _:
            tensor.dims.append(rng.choice((0, 1, 2)))


def _constant(name: str, rng: random.Random) -> onnx.TensorProto:
    """A well-formed constant, but not the one that belongs there."""
    dims = [rng.choice((0, 1, 1, 2, 3, 4, 8)) for _ in range(rng.randrange(5))]
    count = 1
    for extent in dims:
        count *= extent
    if rng.random() < 0.5:
        return helper.make_tensor(name, 1, dims, [rng.choice(REALS) for _ in range(count)])
    kind = rng.choice((6, 7))
    return helper.make_tensor(
        name, kind, dims, [max(-(2**31), min(_number(rng), 2**31 - 1)) for _ in range(count)]
    )


def _change_attribute(attribute: Any, rng: random.Random) -> None:
    match rng.randrange(5):
        case 0:
            attribute.i = _number(rng)
        case 1:
            attribute.f = rng.choice(REALS)
        case 2:
            attribute.s = rng.choice(TEXTS).encode()
        case 3 if attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = _number(rng)
        case 3:
            attribute.ints.append(_number(rng))
        case _:
            attribute.type = rng.randrange(16)
