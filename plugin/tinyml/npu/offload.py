# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From a TFLite file to a graph in which the NPU computes whatever Vela can place there."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tflite

from tinyml.base.errors import ConfigError, ModelError, ToolError, UnsupportedError
from tinyml.base.naming import short
from tinyml.cores.accelerators import check
from tinyml.importers import ModelFile
from tinyml.importers.tflite_file import OperatorRecord, Subgraph, parse
from tinyml.importers.tflite_graph import read_parsed
from tinyml.ir import Graph, Node
from tinyml.npu import payload, vela
from tinyml.npu.as_tflite import written
from tinyml.npu.operator import EthosU, Slot, packed
from tinyml.npu.partition import Part, in_order, partition, replaced
from tinyml.npu.selection import name_of, select
from tinyml.settings.options import Options

INTEGERS = {getattr(tflite.TensorType, name) for name in ("INT8", "INT16", "INT32", "INT64", "BOOL", "INT4")}
FLOATS = {getattr(tflite.TensorType, name) for name in ("FLOAT32", "FLOAT16", "FLOAT64")}
STATEFUL = {"SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "CALL_ONCE", "IF", "WHILE", "CALL"}
MOVES = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
"""Operators that cost nothing here: a part of these alone stays on the CPU."""


@dataclass(frozen=True)
class Compiled:
    """A part as Vela compiled it."""

    part: Part
    payload: payload.Payload
    cycles: int


def read_for_npu(file: ModelFile, options: Options) -> Graph:
    """A TFLite file, in which Vela finds every option of every operator; parts of it are on the NPU."""
    if options.shapes:
        raise ConfigError(
            "npu and shapes exclude each other: Vela compiles for the shapes in the file",
            "convert the model with the shapes that it runs with",
        )
    if options.outputs:
        raise ConfigError(
            "npu and outputs exclude each other: Vela compiles the whole file",
            "convert the model with the outputs that are needed",
        )
    return placed(file, options.npu, _small(options))


def on_npu(graph: Graph, options: Options) -> Graph:
    """The graph after the passes. One from ONNX gets its parts here; one from TFLite has them already."""
    if options.npu and not any(isinstance(node.op, EthosU) for node in graph.nodes):
        graph = placed_layers(graph, options.npu, _small(options))
    return packed(graph, io_outside=options.io.caller)


def _small(options: Options) -> bool:
    return options.optimize in ("ram", "size")


def placed(file: ModelFile, accelerator: str, small: bool = False) -> Graph:
    """The model as a graph; every part that the NPU computes is an EthosU operator in it.

    ``small``: parts need less memory and may take longer.
    """
    check(accelerator)
    vela.require()
    subgraphs = parse(file.path, file.content)
    main = subgraphs[0]
    compiled, reasons = _compiled(file, main, vela.Settings(accelerator, small))
    if not compiled:
        raise UnsupportedError(*_nothing(file, main, accelerator, reasons))
    records = [(one.part, _record(file, main, one, accelerator)) for one in compiled]
    graph = read_parsed(file.path, (replaced(main, records), *subgraphs[1:]), {})
    return replace(graph, notes=(*graph.notes, _note(main, compiled, accelerator), *reasons))


ROUNDING = (
    "the NPU rounds as TensorFlow Lite does, twice: its int8 values may differ by one step from ONNX's "
    "after each layer"
)


def placed_layers(graph: Graph, accelerator: str, small: bool = False) -> Graph:
    """The same for a graph that came from ONNX, after the passes. Its parts compute as TFLite does."""
    check(accelerator)
    vela.require()
    file = written(graph)
    model = ModelFile(Path(graph.name), file.content)
    (main,) = parse(model.path, file.content)
    together = [frozenset(operators) for operators in file.operators if len(operators) > 1]
    compiled, reasons = _compiled(model, main, vela.Settings(accelerator, small), together)
    if not compiled:
        raise UnsupportedError(*_nothing(model, main, accelerator, reasons))
    nodes = {operator: i for i, operators in enumerate(file.operators) for operator in operators}
    gone = {nodes[operator] for one in compiled for operator in one.part.operators}
    new = []
    for one in compiled:
        record = _record(model, main, one, accelerator)
        names = [tuple(file.tensors[t] for t in tensors) for tensors in (record.inputs, record.outputs)]
        first = graph.nodes[nodes[one.part.operators[0]]]
        new.append(Node(first.name, record.options, *names))
    kept = [node for i, node in enumerate(graph.nodes) if i not in gone]
    result = graph.with_nodes(in_order([*kept, *new]))
    return replace(result, notes=(*graph.notes, _note(main, compiled, accelerator), ROUNDING, *reasons))


def _candidates(graph: Subgraph) -> set[int]:
    """Operators on integers that keep no state; uint8 becomes int8 on the CPU first."""

    def fits(operator: OperatorRecord) -> bool:
        tensors = [graph.tensors[i] for i in (*operator.inputs, *operator.outputs) if i >= 0]
        computed = [t for t in tensors if t.data is None]
        return (
            not operator.is_custom
            and operator.op_type not in STATEFUL
            and all(t.type_code in INTEGERS for t in computed)
            and not any(t.is_variable for t in tensors)
        )

    return {index for index, operator in enumerate(graph.operators) if fits(operator)}


def _compiled(
    file: ModelFile, graph: Subgraph, settings: vela.Settings, together: Sequence[frozenset[int]] = ()
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
    file: ModelFile, graph: Subgraph, part: Part, settings: vela.Settings, reasons: dict[str, None]
) -> Compiled | set[int]:
    """A part, compiled, or those of its operators that Vela does not take."""
    try:
        model = select(file.content, part.operators, part.inputs, part.outputs)
        output = vela.compile_part(model, settings)
    except (ValueError, IndexError, struct.error) as error:
        raise ModelError(f"{file.path} cannot be split for an NPU: {error}", "convert it again") from None
    except ToolError as error:
        reasons.setdefault(error.message)
        return set(part.operators)
    written, npu, cpu = payload.operators(output.model)
    left = {written.tensors[t].name for op in cpu for t in op.outputs}
    refused = {i for i in part.operators if {name_of(t) for t in graph.operators[i].outputs} & left}
    names = {name_of(index): tensor.name for index, tensor in enumerate(graph.tensors)}
    for op_type, name, reason in vela.refusals(output.log):
        reasons.setdefault(f"Vela leaves {op_type} {short(names.get(name, name))!r} to the CPU: {reason}")
    if not refused and len(npu) == 1 and not cpu:
        found = payload.read(output.model, written, npu[0], settings.accelerator)
        if {*found.outputs} == {name_of(t) for t in part.outputs}:
            return Compiled(part, found, output.cycles)
    return refused or set(part.operators)


def _record(file: ModelFile, graph: Subgraph, one: Compiled, accelerator: str) -> OperatorRecord:
    """The operator that replaces a part; it brings the part along as its options."""
    by_name = {name_of(t): t for t in (*one.part.inputs, *one.part.outputs)}
    found = one.payload
    inputs = tuple(by_name[name] for name in found.inputs)
    outputs = tuple(by_name[name] for name in found.outputs)
    members = tuple(graph.operators[i] for i in one.part.operators)
    inner = read_parsed(file.path, (Subgraph(graph.tensors, members, inputs, outputs),), {})
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
    return OperatorRecord(payload.CUSTOM, True, 1, inputs, outputs, op)


def _note(graph: Subgraph, compiled: list[Compiled], accelerator: str) -> str:
    count = sum(len(one.part.operators) for one in compiled)
    parts = "1 part" if len(compiled) == 1 else f"{len(compiled)} parts"
    inside = {i for one in compiled for i in one.part.operators}
    rest = [op.op_type for i, op in enumerate(graph.operators) if i not in inside]
    names = f"; on the CPU: {', '.join(dict.fromkeys(rest))}" if rest else ""
    cycles = sum(one.cycles for one in compiled)
    return (
        f"{accelerator} computes {count} of {len(graph.operators)} operators in {parts}, "
        f"in {cycles:,} NPU cycles by Vela's estimate{names}"
    )


def _nothing(file: ModelFile, graph: Subgraph, accelerator: str, reasons: list[str]) -> tuple[str, str]:
    """The error for a model without any part for the NPU."""
    if any(t.type_code in FLOATS and t.data is None for t in graph.tensors) and not _candidates(graph):
        return (
            f"{file.path.name} is a float model, and {accelerator} computes on int8",
            "make it int8 first: in training, with `tinyml quantize`, or with quantize: in tinyml.yaml",
        )
    why = "".join(f"\n  {reason}" for reason in reasons)
    kinds = ", ".join(dict.fromkeys(operator.op_type for operator in graph.operators))
    return (
        f"{accelerator} can compute nothing of {file.path.name} (operators: {kinds}){why}",
        "compile it without npu",
    )
