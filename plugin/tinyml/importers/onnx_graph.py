# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An ONNX graph as IR: looks up values, orders nodes, and hands each node to its reader in ``ops/``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx

from tinyml.base import limits
from tinyml.base.errors import ConfigError, ModelError, UnsupportedError
from tinyml.importers import onnx_loop, onnx_scan, onnx_sequences
from tinyml.importers.attempt import Attempt
from tinyml.importers.cell_scales import cell_bits_of
from tinyml.importers.growing_states import extents_of, note_on, unpaired
from tinyml.importers.onnx_functions import bind_attributes, has_schema_body, schema_body
from tinyml.importers.onnx_integers import operands
from tinyml.importers.onnx_outputs import free_names
from tinyml.importers.onnx_values import (
    array,
    attribute_value,
    check_declared,
    check_text,
    dtype,
    input_tensor,
    opsets,
)
from tinyml.importers.outputs import (
    check_bounds,
    clear_rests,
    finish_outputs,
    named_counts,
    with_counts,
)
from tinyml.importers.reasons import onnx_reason
from tinyml.importers.states import states_of
from tinyml.importers.unsupported import Complaints
from tinyml.importers.variables import declared_states, own_states
from tinyml.ir import Array, Graph, Shape, Tensor
from tinyml.ops import catalog  # noqa: F401  (registers the readers)
from tinyml.ops.attention.grown import is_cache, read_attention
from tinyml.ops.control.choose import chosen
from tinyml.ops.framework.reading import MALFORMED, ONNX_READERS, Builder, OnnxNode, reported
from tinyml.ops.recurrent.rnn_onnx import CELL_BITS

Values = dict[str, str]  # ONNX value name -> IR tensor name

SPECIAL = (("", "If"), ("", "Scan"), ("", "Loop"))
"""Operators with graphs inside, which are read here."""


def read(
    model: onnx.ModelProto,
    name: str,
    shapes: Mapping[str, Shape],
    bounds: Mapping[str, int] | None = None,
    unrolled: bool = False,
) -> Graph:
    """The whole model as a graph called ``name``."""
    reader = _Reader(model)
    reader.build.bounds, reader.build.unrolls = bounds or {}, unrolled
    try:
        return reader.graph(name, shapes)
    except (ModelError, UnsupportedError) as error:
        if not reader.build.open_inputs or error.hint not in ("", MALFORMED):
            raise
        # an open length was taken as 1, which may be too short: not the file's fault
        hint = "; ".join(reader.build.open_inputs.values())
        raise type(error)(error.message, f"{hint}; or {error.hint}" if error.hint else hint) from error


def known_values(
    model: onnx.ModelProto,
    nodes: Iterable[onnx.NodeProto],
    constants: Mapping[str, Array],
    shapes: Mapping[str, Shape] | None = None,
) -> dict[str, Tensor]:
    """What the import makes of each value that ``nodes`` compute: its shape, and its data if they are known.

    ``constants`` take the place of inputs and of other values; ``shapes`` are those of the other inputs.
    """
    reader, values = _Reader(model), dict[str, str]()
    for value in model.graph.input if shapes is not None else ():
        if value.name not in constants:
            values[value.name] = input_tensor(reader.build, value, (shapes or {}).get(value.name)).name
    for name, data in constants.items():
        values[name] = reader.build.constant(data, name).name
    nodes = list(nodes)
    needed = {name for node in nodes for name in free_names(node)} - set(values)
    reader._initializers([t for t in model.graph.initializer if t.name in needed], values)
    reader._nodes(nodes, values, reader.opsets)
    reader.complaints.raise_if_any()
    return {name: reader.build.tensors[tensor] for name, tensor in values.items()}


class _Reader:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.opsets = opsets(model.opset_import)
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.cell_bits = cell_bits_of(model)
        self.build = Builder()
        self.complaints = Complaints()
        self.sequences: dict[str, tuple[Tensor, ...]] = {}  # values that are several tensors
        self.unread: dict[str, tuple[str, str]] = {}  # outputs that no reader gives, and whose they are
        self.count = 0  # nodes read, those of functions and subgraphs each time
        self.depth = 0  # functions and subgraphs that are being read

    def graph(self, name: str, shapes: Mapping[str, Shape]) -> Graph:
        proto = self.model.graph
        values: Values = {}
        remembered = {state.input: state for state in states_of(self.model)}
        constants = [tensor for tensor in proto.initializer if tensor.name not in remembered]
        known = {*remembered, *(tensor.name for tensor in constants)}
        inputs = [value for value in proto.input if value.name not in known]
        unknown = set(shapes) - {value.name for value in inputs} - set(remembered)
        if unknown:
            raise ConfigError(
                f"the model has no input called {', '.join(sorted(unknown))}",
                f"its inputs are {', '.join(value.name for value in inputs)}",
            )
        for value in proto.input:
            if value in inputs or value.name in remembered:
                values[value.name] = input_tensor(self.build, value, shapes.get(value.name)).name
        self.build.states = {values[name] for name in remembered}
        self._initializers(constants, values)
        twice = [name for name, count in Counter(value.name for value in proto.input).items() if count > 1]
        twice += [name for node in proto.node for name in node.output if name in values]
        if twice:
            raise ModelError(f"{twice[0]!r} is the name of several values", MALFORMED)
        self._nodes(proto.node, values, self.opsets)
        self._complain_of_unread(value.name for value in proto.output)
        updates = {state.output for state in remembered.values()}
        names = [value.name for value in proto.output if value.name not in updates]
        self.complaints.raise_if_any(names)
        for value in proto.output:
            if value.name in self.sequences:
                raise UnsupportedError(
                    f"the output {value.name!r} is a sequence", "make its tensors outputs of the model"
                )
            if value.name not in values:
                raise ModelError(f"no node computes the model's output {value.name!r}")
        states = declared_states(self.build, list(remembered.values()), values) + own_states(self.build)
        if len(set(names)) != len(names):
            raise ModelError("two outputs of the model have the same name", "export the model again")
        lengths = {e: v.name for v in reversed(proto.input) for e in extents_of(v) if isinstance(e, str)}
        check_bounds(self.build, lengths)
        if pairs := unpaired(self.model):
            self.build.note(note_on(pairs))
        for value in proto.output:
            check_declared(self.build, value, self.build.tensors[values[value.name]])
        graph_inputs = tuple(values[value.name] for value in inputs)
        results = clear_rests(self.build, [self.build.tensors[values[name]] for name in names])
        outputs, names = with_counts(self.build, results, names)
        graph = Graph(
            name,
            self.build.tensors,
            tuple(self.build.nodes),
            graph_inputs,
            tuple(outputs),
            states,
            tuple(self.build.notes),
            self.build.labels,
            tuple(self.build.open_inputs),
            named_counts(self.build, outputs, names),
            self.build.longest_loop,
        )
        return finish_outputs(graph, names)

    def _initializers(self, tensors: Iterable[onnx.TensorProto], values: Values) -> None:
        for tensor in tensors:
            dtype(tensor.data_type, tensor.name)
            values[tensor.name] = self.build.constant(array(tensor), tensor.name).name

    def _nodes(self, nodes: Iterable[onnx.NodeProto], values: Values, opsets: Mapping[str, int]) -> None:
        """Read nodes in an order that works, even if the file lists them in another."""
        waiting = list(nodes)
        times = Counter(name for node in waiting for name in node.output if name)
        twice = [name for name, count in times.items() if count > 1]
        if twice:
            raise ModelError(f"two nodes compute {twice[0]!r}", MALFORMED)
        produced = set(times)
        while waiting:
            later = []
            for node in waiting:
                free = free_names(node)
                if any(
                    name in produced
                    and name not in values
                    and name not in self.sequences
                    and name not in self.complaints.poisoned
                    for name in free
                ):
                    later.append(node)
                else:
                    self._node(node, values, opsets)
            if len(later) == len(waiting):
                raise ModelError(
                    "the graph has a cycle through " + ", ".join(n.name or n.op_type for n in later[:5])
                )
            waiting = later

    def _node(self, node: onnx.NodeProto, values: Values, opsets: Mapping[str, int]) -> None:
        self._complain_of_unread(node.input)
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = opsets.get(domain, 1)
        if any(name in self.complaints.poisoned for name in node.input):
            self._complain_if_unknown(node, domain, opset)
            self.complaints.poison(node.output)
            return
        self.count += 1
        limits.check("nodes", self.count, "the model, with its functions and subgraphs")
        self.build.scope = node.name or next((name for name in node.output if name), node.op_type)
        self.build.names = tuple(name for name in node.output if name)
        if domain == "" and (
            node.op_type in onnx_sequences.READERS or any(name in self.sequences for name in node.input)
        ):
            self._sequence(node, values)
            return
        missing = [name for name in node.input if name and name not in values]
        if missing:
            raise ModelError(
                f"{node.op_type} node {node.name!r} reads {missing[0]!r}, which nothing computes"
            )
        found = [self.build.tensors[values[name]] if name else None for name in node.input]
        inputs = operands(self.build, domain, node.op_type, found)
        try:
            with self._deeper(node):
                results = self._meaning(node, domain, opset, inputs, values, opsets)
        except UnsupportedError as error:
            self.complaints.add(domain, node.op_type, error)
            self.complaints.poison(node.output)
            return
        for name in node.output[len(results) :]:  # such as the statistics of an old BatchNormalization
            if name:
                self.unread[name] = (domain, node.op_type)
                self.complaints.poison([name])
        for name, tensor in zip(node.output, results, strict=False):
            if name:
                values[name] = tensor.name

    def _sequence(self, node: onnx.NodeProto, values: Values) -> None:
        """A node that makes or reads a sequence, whose number of tensors is known."""
        operands: list[Tensor | tuple[Tensor, ...] | None] = []
        for name in node.input:
            if name and name not in values and name not in self.sequences:
                raise ModelError(f"{node.op_type} node {node.name!r} reads {name!r}, which nothing computes")
            operands.append(
                self.sequences[name]
                if name in self.sequences
                else self.build.tensors[values[name]]
                if name
                else None
            )
        attributes = {a.name: attribute_value(a) for a in node.attribute}
        read = onnx_sequences.SequenceNode(node.op_type, self.build.scope, operands, attributes)
        try:
            with self._deeper(node):
                result = onnx_sequences.read(read, self.build)
        except UnsupportedError as error:
            self.complaints.add("", node.op_type, error)
            self.complaints.poison(node.output)
            return
        if isinstance(result, tuple):
            self.sequences[node.output[0]] = result
        else:
            values[node.output[0]] = result.name

    def _complain_if_unknown(self, node: onnx.NodeProto, domain: str, opset: int) -> None:
        """Also after something unsupported: the message lists everything that is missing."""
        operator = (domain, node.op_type)
        known = operator in ONNX_READERS or operator in self.functions or operator in SPECIAL
        known = known or (domain == "" and node.op_type in onnx_sequences.READERS)
        if not known and not has_schema_body(node, opset):
            self.complaints.add(domain, node.op_type, _unknown(domain, node.op_type))

    def _complain_of_unread(self, names: Iterable[str]) -> None:
        """An output that its reader does not give matters only where it is used."""
        for name in names:
            if name in self.unread:
                domain, op_type = self.unread[name]
                error = UnsupportedError(f"its output {name!r} is not supported")
                self.complaints.add(domain, op_type, error)

    @contextmanager
    def _deeper(self, node: onnx.NodeProto) -> Iterator[None]:
        """Wraps the reading of a node, which may be a call: functions that call themselves have no end."""
        self.depth += 1
        limits.check("depth", self.depth, f"{node.op_type} node {node.name!r}: calls inside calls")
        try:
            with reported(lambda: f"{node.op_type} node {self.build.scope!r}"):
                yield
        finally:
            self.depth -= 1

    def _meaning(
        self,
        node: onnx.NodeProto,
        domain: str,
        opset: int,
        inputs: tuple[Tensor | None, ...],
        values: Values,
        opsets: Mapping[str, int],
    ) -> Sequence[Tensor]:
        if (domain, node.op_type) == ("", "If"):
            return self._branch(node, inputs, values, opsets)
        if (domain, node.op_type) == ("", "Scan"):
            step, fixed = self._body(node, values, opsets), _fixed(node, 0, 0)
            return onnx_scan.read(node, inputs, self.build, step, fixed, self._attempt())
        if (domain, node.op_type) == ("", "Loop"):
            step, fixed = self._body(node, values, opsets), _fixed(node, 2, 1)
            return onnx_loop.read(inputs, len(node.output), self.build, step, fixed, self._attempt())
        if (domain, node.op_type) in self.functions:
            return self._function(self.functions[(domain, node.op_type)], node, inputs)
        reader = ONNX_READERS.get((domain, node.op_type))
        if reader is not None:
            check_text(node)
            return reader(self._read(node, domain, opset, inputs), self.build)
        if (
            (domain, node.op_type) == ("", "Attention")
            and len(inputs) > 5
            and is_cache(self.build, inputs[4])
        ):
            return read_attention(self._read(node, domain, opset, inputs), self.build)
        body = schema_body(node, opset, inputs)
        if body is not None:
            return self._function(body, node, inputs)
        raise _unknown(domain, node.op_type)

    def _read(
        self, node: onnx.NodeProto, domain: str, opset: int, inputs: tuple[Tensor | None, ...]
    ) -> OnnxNode:
        attributes = {a.name: attribute_value(a) for a in node.attribute}
        if node.op_type == "LSTM" and node.name in self.cell_bits:
            attributes[CELL_BITS] = self.cell_bits[node.name]
        return OnnxNode(node.op_type, domain, self.build.scope, opset, inputs, tuple(node.output), attributes)

    def _branch(
        self, node: onnx.NodeProto, inputs: Sequence[Tensor | None], values: Values, opsets: Mapping[str, int]
    ) -> Sequence[Tensor]:
        """An If with a constant condition is replaced by the branch it takes; else both are read."""
        condition = inputs[0]
        if condition is None:
            raise ModelError(f"If node {node.name!r} has no condition", MALFORMED)

        def results(name: str) -> list[Tensor]:
            graph = _subgraph(node, name)
            inner = dict(values)
            self._initializers(graph.initializer, inner)
            self._nodes(graph.node, inner, opsets)
            return self._results((value.name for value in graph.output), inner)

        if condition.data is not None:
            return results("then_branch" if bool(condition.data.reshape(-1).all()) else "else_branch")
        scope = self.build.scope
        then, other = results("then_branch"), results("else_branch")
        self.build.scope = scope
        return chosen(self.build, condition, then, other)

    def _attempt(self) -> Attempt:
        """What the reading of a body may change."""
        return Attempt(self.build, self.complaints, self)

    def _body(
        self, node: onnx.NodeProto, values: Values, opsets: Mapping[str, int]
    ) -> Callable[[Sequence[Tensor]], Sequence[Tensor]]:
        """One step of a loop."""
        graph = _subgraph(node, "body")

        def step(operands: Sequence[Tensor]) -> Sequence[Tensor]:
            inner = dict(values)
            inner.update({v.name: t.name for v, t in zip(graph.input, operands, strict=True)})
            self._initializers(graph.initializer, inner)
            self._nodes(graph.node, inner, opsets)
            return self._results((value.name for value in graph.output), inner)

        return step

    def _function(
        self, function: onnx.FunctionProto, node: onnx.NodeProto, inputs: Sequence[Tensor | None]
    ) -> Sequence[Tensor]:
        inner: Values = {
            name: tensor.name
            for name, tensor in zip(function.input, inputs, strict=False)
            if tensor is not None
        }
        given = [
            name if i < len(inputs) and inputs[i] is not None else "" for i, name in enumerate(function.input)
        ]
        absent = {name for name, kept in zip(function.input, given, strict=True) if not kept}
        nodes = bind_attributes(function, node)
        for inner_node in nodes:
            for i, name in enumerate(inner_node.input):
                if name in absent:
                    inner_node.input[i] = ""
        scope = self.build.scope
        for inner_node in nodes:
            inner_node.name = f"{scope}/{inner_node.op_type}"
        self._nodes(nodes, inner, {**self.opsets, **opsets(function.opset_import)})
        self.build.scope = scope
        # one result per output of the call, in order; the value of an unused one does not matter
        wanted = [name for name, outer in zip(function.output, node.output, strict=False) if outer]
        found = dict(zip(wanted, self._results(wanted, inner), strict=True))
        offered = list(function.output)[: len(node.output)]
        return [found[name if name in found else wanted[0]] for name in offered] if wanted else []

    def _results(self, names: Iterable[str], values: Values) -> list[Tensor]:
        names = list(names)
        if any(name in self.complaints.poisoned for name in names):
            raise UnsupportedError("a part of it is not supported")
        for name in names:
            if name not in values:
                raise ModelError(f"nothing computes {name!r}, an output of a subgraph or function", MALFORMED)
        return [self.build.tensors[values[name]] for name in names]


def _unknown(domain: str, op_type: str) -> UnsupportedError:
    advice = onnx_reason(domain, op_type)
    if not advice and domain.startswith("com.microsoft"):
        advice = "onnxruntime's optimiser may have made it: use the model from before the optimisation"
    elif not advice and domain:
        advice = "for an operator of your own, see docs/operators.md"
    return UnsupportedError(f"operator {op_type} is not supported", advice)


def _fixed(node: onnx.NodeProto, given: int, results: int) -> list[int]:
    """The places of values that the body of a loop passes on unchanged.

    ``given`` and ``results``: where the inputs and the outputs of the body begin that a loop carries.
    """
    body = _subgraph(node, "body")
    sources = {inner.output[0]: inner.input[0] for inner in body.node if inner.op_type == "Identity"}
    count = len(node.input) - given
    if results == 0:
        count -= next(a.i for a in node.attribute if a.name == "num_scan_inputs")
    found = []
    for place, (old, new) in enumerate(zip(body.input[given:], body.output[results:], strict=False)):
        name = new.name
        while name in sources:
            name = sources[name]
        if place < count and name == old.name:
            found.append(place)
    return found


def _subgraph(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    for attribute in node.attribute:
        if attribute.name == name and attribute.type == onnx.AttributeProto.GRAPH:
            return attribute.g
    raise ModelError(f"{node.op_type} node {node.name!r} has no {name}", MALFORMED)
