# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A case: one operator on given inputs, with the expected outputs. ``tests/ops/*.py`` are lists of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx
import onnx.reference
from onnx import helper, numpy_helper

from tinyml.importers import onnx_graph
from tinyml.ir import Array, Graph, Node, Op, Quant, Tensor, TensorType
from tinyml.reference.session import answers

Oracle = Literal["onnxruntime", "reference"]


@dataclass(frozen=True)
class Case:
    """A graph, its inputs by name, and the outputs in order (None: only numpy against C)."""

    name: str
    graph: Callable[[], Graph]
    inputs: Mapping[str, Array]
    expected: Callable[[], Sequence[Array]] | None = None
    rtol: float = 1e-5
    atol: float = 1e-6
    lsb: int = 0  # integers may differ by so many steps


@dataclass(frozen=True)
class Const:
    """An operand that the compiler knows."""

    data: Array


@dataclass(frozen=True)
class Stored:
    """A quantised operand: integers and what they mean."""

    data: Array
    quant: Quant


def onnx_case(
    name: str,
    op_type: str,
    inputs: Sequence[Array | Const | None],
    *,
    outputs: int = 1,
    opset: int = 21,
    domain: str = "",
    oracle: Oracle = "onnxruntime",
    expected: Sequence[Array] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **attributes: Any,
) -> Case:
    """One ONNX node through the importer and all passes; the oracle is a reference runtime."""
    names = [f"x{i}" if operand is not None else "" for i, operand in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    return onnx_nodes_case(
        name,
        [node],
        {n: operand for n, operand in zip(names, inputs, strict=True) if operand is not None},
        [f"y{i}" for i in range(outputs)],
        opset=opset,
        oracle=oracle,
        expected=expected,
        rtol=rtol,
        atol=atol,
    )


def onnx_nodes_case(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    operands: Mapping[str, Array | Const],
    outputs: Sequence[str],
    *,
    opset: int = 21,
    oracle: Oracle = "onnxruntime",
    expected: Sequence[Array] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    lsb: int = 0,
) -> Case:
    """A small ONNX graph."""
    run_time = {n: a for n, a in operands.items() if not isinstance(a, Const)}
    model = _model(nodes, operands, outputs, opset)

    def answer() -> Sequence[Array]:
        return expected if expected is not None else _ask(oracle, model, run_time)

    return Case(name, lambda: onnx_graph.read(model, name, {}), run_time, answer, rtol, atol, lsb)


def _model(
    nodes: Sequence[onnx.NodeProto], operands: Mapping[str, Array | Const], outputs: Sequence[str], opset: int
) -> onnx.ModelProto:
    def value(name: str, array: Array) -> onnx.ValueInfoProto:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, array.shape)

    domains = {node.domain for node in nodes if node.domain}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    graph = helper.make_graph(
        list(nodes),
        "case",
        [value(n, a) for n, a in operands.items() if not isinstance(a, Const)],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(a.data, n) for n, a in operands.items() if isinstance(a, Const)],
    )
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _ask(oracle: Oracle, model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    if oracle == "reference":
        return list(onnx.reference.ReferenceEvaluator(model).run(None, dict(inputs)))
    return answers(model, inputs)


def op_case(
    name: str,
    op: Op,
    inputs: Sequence[Array | Const | Stored | None],
    *,
    outputs: Sequence[TensorType] | None = None,
    expected: Sequence[Array] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    lsb: int = 0,
) -> Case:
    """One operator of the IR: numpy against C, and both against ``expected`` where it is given."""
    run_time: dict[str, Array] = {}
    tensors: list[Tensor | None] = []
    for index, operand in enumerate(inputs):
        if operand is None:
            tensors.append(None)
        elif isinstance(operand, Const):
            tensors.append(Tensor.constant(f"x{index}", operand.data))
        else:
            data, quant = (operand.data, operand.quant) if isinstance(operand, Stored) else (operand, None)
            tensors.append(_variable(f"x{index}", data, quant))
            run_time[f"x{index}"] = data

    def graph() -> Graph:
        types = outputs if outputs is not None else op.infer(tensors)
        results = [Tensor.of(f"y{i}", type_) for i, type_ in enumerate(types)]
        operands = tuple(t.name if t is not None else "" for t in tensors)
        node = Node(name, op, operands, tuple(t.name for t in results))
        table = {t.name: t for t in [*tensors, *results] if t is not None}
        return Graph(name, table, (node,), tuple(run_time), tuple(t.name for t in results))

    return Case(name, graph, run_time, None if expected is None else lambda: expected, rtol, atol, lsb)


def _variable(name: str, data: Array, quant: Quant | None) -> Tensor:
    template = Tensor.constant(name, data, quant)
    return Tensor.of(name, template.type)


@dataclass
class Report:
    """The differences found in a list of cases."""

    problems: list[str] = field(default_factory=list)

    def compare(self, case: Case, what: str, found: Sequence[Array], wanted: Sequence[Array]) -> None:
        if len(found) != len(wanted):
            self.problems.append(f"{case.name}: {what}: {len(found)} outputs instead of {len(wanted)}")
            return
        for index, (f, w) in enumerate(zip(found, wanted, strict=True)):
            complaint = _difference(case, np.asarray(f), np.asarray(w))
            if complaint:
                self.problems.append(f"{case.name}: {what}, output {index}: {complaint}")


def _size_of_terms(sums: Array) -> float:
    """Roughly, from 1 to 10: a sum near 0 is as inexact as its terms, whose order depends on the CPU."""
    finite = np.abs(sums[np.isfinite(sums)])
    return float(np.clip(finite.max(initial=1), 1, 10))


def _difference(case: Case, found: Array, wanted: Array) -> str:
    if found.shape != wanted.shape:
        return f"shape {found.shape} instead of {wanted.shape}"
    if found.dtype != wanted.dtype:
        return f"type {found.dtype} instead of {wanted.dtype}"
    if found.dtype.kind == "f":
        equal = np.isclose(
            found, wanted, rtol=case.rtol, atol=case.atol * _size_of_terms(wanted), equal_nan=True
        )
    elif found.dtype.kind == "b":
        equal = found == wanted
    else:
        far = np.maximum(found, wanted) - np.minimum(found, wanted)  # unsigned types too
        equal = far <= case.lsb
    if equal.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~equal)[0])
    wrong = f"{int((~equal).sum())} of {equal.size} differ"
    return f"{wrong}, first at {place}: {found[place]!r} instead of {wanted[place]!r}"
