# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph that Vela can place on the NPU become one operator each, after the passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tinyml.base.errors import ToolError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import short
from tinyml.cores.accelerators import check
from tinyml.importers.tflite_file import Subgraph, parse
from tinyml.importers.tflite_graph import read_parsed
from tinyml.ir import Graph, Node
from tinyml.npu import payload, vela
from tinyml.npu.as_tflite import Written, name_of, written
from tinyml.npu.operator import EthosU, Slot, packed
from tinyml.npu.partition import Part, in_order, partition
from tinyml.settings.options import Options

FILE = Path("the model for Vela")
MOVES = {"RESHAPE"}
"""Operators that cost nothing here: a part of these alone stays on the CPU."""

ROUNDING = (
    "the NPU rounds as TensorFlow Lite does, twice: its int8 values may differ by one step from ONNX's "
    "after each layer"
)


@dataclass(frozen=True)
class Compiled:
    """A part as Vela compiled it."""

    part: Part
    payload: payload.Payload
    cycles: int


def on_npu(graph: Graph, options: Options) -> Graph:
    """The graph with one operator for each part that the NPU computes; its parts compute as TFLite does."""
    small = options.optimize in ("ram", "size")
    placed = placed_layers(graph, options.npu, small)
    return packed(placed, io_outside=options.io.caller)


def placed_layers(graph: Graph, accelerator: str, small: bool = False) -> Graph:
    """Every part that the NPU computes is an EthosU operator; ``small``: less memory instead of speed."""
    check(accelerator)
    vela.require()
    file = written(graph)
    (main,) = parse(FILE, file.content)
    together = [frozenset(operators) for operators in file.operators if len(operators) > 1]
    compiled, reasons = _compiled(file, main, vela.Settings(accelerator, small), together)
    if not compiled:
        raise UnsupportedError(*_nothing(graph, accelerator, reasons))
    nodes = {operator: i for i, operators in enumerate(file.operators) for operator in operators}
    inside = {nodes[operator] for one in compiled for operator in one.part.operators}
    new = []
    for one in compiled:
        first = graph.nodes[nodes[one.part.operators[0]]]
        new.append(_node(first.name, file, main, one, accelerator))
    kept = [node for i, node in enumerate(graph.nodes) if i not in inside]
    result = graph.with_nodes(in_order([*kept, *new]))
    notes = [_note(graph, inside, compiled, accelerator), *([ROUNDING] if inside & file.inexact else [])]
    return replace(result, notes=(*graph.notes, *notes, *reasons))


def _candidates(graph: Subgraph) -> set[int]:
    """The operators that TFLite has, all of which are on integers."""
    return {index for index, operator in enumerate(graph.operators) if not operator.is_custom}


def _compiled(
    file: Written, graph: Subgraph, settings: vela.Settings, together: Sequence[frozenset[int]]
) -> tuple[list[Compiled], list[str]]:
    """Parts that Vela compiled as a whole. What it leaves to the CPU splits a part into smaller ones.

    ``together``: operators that are on the NPU all or none.
    """
    on_npu = _candidates(graph)
    known: dict[Part, Compiled] = {}
    reasons: dict[str, None] = {}
    while True:
        parts = partition(graph, on_npu)
        refused: set[int] = set()
        for part in parts:
            if part in known:
                continue
            if not part.inputs or {graph.operators[i].op_type for i in part.operators} <= MOVES:
                refused.update(part.operators)
                continue
            found = _compile(file, graph, part, settings, reasons)
            if isinstance(found, Compiled):
                known[part] = found
            else:
                refused |= found
        if not refused:
            return [known[part] for part in parts], list(reasons)
        on_npu -= refused.union(*(group for group in together if group & refused))


def _compile(
    file: Written, graph: Subgraph, part: Part, settings: vela.Settings, reasons: dict[str, None]
) -> Compiled | set[int]:
    """A part, compiled, or those of its operators that Vela does not take."""
    try:
        output = vela.compile_part(file.cut(part.operators, part.inputs, part.outputs), settings)
    except ToolError as error:
        reasons.setdefault(error.message)
        return set(part.operators)
    result, npu, cpu = payload.operators(output.model)
    left = {result.tensors[t].name for op in cpu for t in op.outputs}
    refused = {i for i in part.operators if {name_of(t) for t in graph.operators[i].outputs} & left}
    names = {name_of(index): tensor.name for index, tensor in enumerate(graph.tensors)}
    for op_type, name, reason in vela.refusals(output.log):
        reasons.setdefault(f"Vela leaves {op_type} {short(names.get(name, name))!r} to the CPU: {reason}")
    if not refused and len(npu) == 1 and not cpu:
        found = payload.read(output.model, result, npu[0], settings.accelerator)
        if {*found.outputs} == {name_of(t) for t in part.outputs}:
            return Compiled(part, found, output.cycles)
    return refused or set(part.operators)


def _node(name: str, file: Written, graph: Subgraph, one: Compiled, accelerator: str) -> Node:
    """The operator that replaces a part; it brings the part along."""
    by_name = {name_of(t): t for t in (*one.part.inputs, *one.part.outputs)}
    found = one.payload
    inputs = tuple(by_name[name] for name in found.inputs)
    outputs = tuple(by_name[name] for name in found.outputs)
    members = tuple(graph.operators[i] for i in one.part.operators)
    inner = read_parsed(FILE, (Subgraph(graph.tensors, members, inputs, outputs),), {})
    op = EthosU(
        accelerator,
        found.commands,
        found.weights,
        found.scratch_bytes,
        found.input_slots,
        found.output_slots,
        tuple(operator.op_type for operator in members),
        one.cycles,
        inner,
        len(inputs) != 1 or found.input_slots != (Slot(0),),
        len(outputs) != 1 or found.output_slots != (Slot(0),),
    )
    return Node(name, op, tuple(map(file.tensor, inputs)), tuple(map(file.tensor, outputs)))


def _note(graph: Graph, inside: set[int], compiled: list[Compiled], accelerator: str) -> str:
    parts = "1 part" if len(compiled) == 1 else f"{len(compiled)} parts"
    rest = [node.op.kind for i, node in enumerate(graph.nodes) if i not in inside]
    names = f"; on the CPU: {', '.join(dict.fromkeys(rest))}" if rest else ""
    cycles = sum(one.cycles for one in compiled)
    return (
        f"{accelerator} computes {len(inside)} of {len(graph.nodes)} layers in {parts}, "
        f"in {cycles:,} NPU cycles by Vela's estimate{names}"
    )


def _nothing(graph: Graph, accelerator: str, reasons: list[str]) -> tuple[str, str]:
    """The error for a model without any part for the NPU."""
    computed = [graph.tensors[name] for node in graph.nodes for name in node.outputs]
    if all(tensor.dtype.is_float for tensor in computed):
        return (
            f"{graph.name} is a float model, and {accelerator} computes on int8",
            "make it int8 first: in training, with `tinyml quantize`, or with quantize: in tinyml.yaml",
        )
    why = "".join(f"\n  {reason}" for reason in reasons)
    kinds = ", ".join(dict.fromkeys(node.op.kind for node in graph.nodes))
    return (
        f"{accelerator} can compute nothing of {graph.name} (layers: {kinds}){why}",
        "compile it without npu",
    )
