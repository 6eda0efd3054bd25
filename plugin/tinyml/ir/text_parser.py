# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads the text form of a graph, so that tests of passes can be written as text in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.ir import Array, DType, Graph, Node, Op, Quant, Shape, State, Tensor

TYPE = re.compile(r"(\w+)\[([^\]]*)\](?: q\(([^)]*)\))?(?: \{([^}]*)\})?$")
NODE = re.compile(r"(?P<results>.+?) = (?P<kind>\w+)\((?P<body>.*)\)$")


def parse(text: str) -> Graph:
    """The graph of a text that ``text.dump`` printed.

    Constants without values in the text are zeros; lines that begin with # are comments.
    """
    return _Parser().graph(text)


class _Parser:
    def __init__(self) -> None:
        self.name = ""
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.states: list[State] = []
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.kinds = {cls.__name__: cls for cls in _subclasses(Op)}

    def graph(self, text: str) -> Graph:
        lines = enumerate(map(str.strip, text.splitlines()), 1)
        for number, line in lines:
            if not line or line.startswith("#"):
                continue
            try:
                self._line(line, lines)
            except ModelError as error:
                raise ModelError(f"line {number}: {error.message}", error.hint) from None
            except (TypeError, ValueError, IndexError) as error:
                raise ModelError(f"line {number}: {error}, in: {line}") from None
        if not self.name:
            raise ModelError("the text has no line `graph NAME`", "the output of `tinyml compile --dump-ir`")
        ports = tuple(self.inputs), tuple(self.outputs)
        return Graph(self.name, self.tensors, tuple(self.nodes), *ports, tuple(self.states))

    def _line(self, line: str, below: Iterator[tuple[int, str]]) -> None:
        word, _, rest = line.partition(" ")
        if word == "graph":
            if self.name:
                raise ModelError("a second graph begins here", "one graph in a text")
            self.name = rest
        elif word == "input":
            self.inputs.append(self._tensor(rest))
        elif word == "output":
            self.outputs.append(rest)
        elif word == "state":
            declared, _, update = rest.partition(" <- ")
            self.states.append(State(self._tensor(declared), update))
        else:
            self.nodes.append(self._node(line, below))

    def _tensor(self, text: str) -> str:
        name, _, type_ = text.rpartition(": ")
        shape, dtype, quant, _ = _type(type_)
        self.tensors[name] = Tensor(name, shape, dtype, quant)
        return name

    def _node(self, line: str, below: Iterator[tuple[int, str]]) -> Node:
        match = NODE.match(line)
        if match is None or match["kind"] not in self.kinds:
            raise ModelError(
                f"this line is not a node: {line}", "NAME: TYPE = Operator(OPERANDS; NAME=VALUE)"
            )
        outputs = tuple(self._tensor(part) for part in _split(match["results"]))
        operands, _, attributes = match["body"].partition("; ")
        inputs = tuple(self._operand(part) for part in _split(operands))
        op = self.kinds[match["kind"]]
        given = _attributes(op, attributes)
        if any(field.name == "body" for field in fields(op)):
            given["body"] = _Parser().graph(_inside(below))
        return Node(outputs[0], op(**given), inputs, outputs)

    def _operand(self, text: str) -> str:
        if text == "-":
            return ""
        if not text.startswith("const "):
            return text
        shape, dtype, quant, values = _type(text.removeprefix("const "))
        data: Array = np.zeros(shape, dtype.numpy)
        if values is not None:
            data = np.array([_number(v) for v in values.split()], dtype.numpy).reshape(shape)
        tensor = Tensor.constant(f"const{len(self.tensors)}", data, quant)
        self.tensors[tensor.name] = tensor
        return tensor.name


def _inside(below: Iterator[tuple[int, str]]) -> str:
    """The graph inside an operator: the lines below its node, with those of graphs inside that one."""
    lines: list[str] = []
    depth = 1
    for _, line in below:
        depth += line.startswith("graph ") and bool(lines)
        depth -= line == "end"
        if not depth:
            return "\n".join(lines)
        lines.append(line)
    raise ModelError("the graph inside an operator has no line `end`")


def _subclasses(cls: type[Op]) -> Iterator[type[Op]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def _split(text: str) -> list[str]:
    """The parts between commas, but not inside brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _type(text: str) -> tuple[Shape, DType, Quant | None, str | None]:
    match = TYPE.match(text)
    if match is None:
        raise ModelError(f"this is not a type: {text}", "int8[1x4x4x3] q(0.05, 3)")
    dtype, extents, quant, values = match.groups()
    shape = () if extents == "scalar" else tuple(int(extent) for extent in extents.split("x"))
    return shape, DType(dtype), None if quant is None else _quant(quant), values


def _quant(text: str) -> Quant:
    """``0.05, 3``, or per channel ``axis 0, 0.1 0.2, 0 0``."""
    parts = [part.strip() for part in text.split(",")]
    if not parts[0].startswith("axis "):
        return Quant.per_tensor(float(parts[0]), int(parts[1]))
    if len(parts) != 3:
        raise ModelError(f"the scales of q({text}) are not in the text", "q(axis 0, SCALES, ZERO POINTS)")
    scales, zeros = (part.split() for part in parts[1:])
    return Quant(tuple(map(float, scales)), tuple(map(int, zeros)), int(parts[0].removeprefix("axis ")))


def _attributes(op: type[Op], text: str) -> dict[str, Any]:
    types = {field.name: str(field.type) for field in fields(op)}
    found = {}
    for part in _split(text):
        name, _, value = part.partition("=")
        if name not in types:
            raise ModelError(f"{op.__name__} has no attribute {name!r}", ", ".join(types) or "it has none")
        found[name] = _value(value, types[name])
    return found


def _value(text: str, annotation: str) -> Any:
    if annotation == "str":
        return text
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if annotation.startswith("DType"):
        return DType(text)
    if text.startswith("q("):
        return _quant(text[2:-1])
    if "x" in text or annotation.startswith(("tuple", "Pair", "Pads", "Shape", "Clamp")):
        return tuple(_number(item) for item in text.split("x") if item)
    try:
        return _number(text)
    except ValueError:
        return text


def _number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return float(text)
