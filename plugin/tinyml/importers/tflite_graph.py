# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A TFLite model as IR: looks up values, keeps variables, hands each operator to its reader in ``ops/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tinyml.base import limits
from tinyml.base.errors import ConfigError, ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.attempt import Attempt
from tinyml.importers.open_extents import Extent, closed
from tinyml.importers.outputs import (
    check_bounds,
    clear_rests,
    finish_outputs,
    named_counts,
    unique,
    with_counts,
)
from tinyml.importers.reasons import tflite_reason
from tinyml.importers.rolling import Outline, Turn, passed_on, rolled
from tinyml.importers.tflite_file import OperatorRecord, Subgraph, TensorRecord, parse
from tinyml.importers.tflite_outputs import EFFECTS, with_outputs
from tinyml.importers.tflite_results import check_activation, check_output, check_result, check_types
from tinyml.importers.tflite_values import data_of, real_data, type_of
from tinyml.importers.unrolling import goes_on
from tinyml.importers.unsupported import Complaints
from tinyml.importers.variables import Variables
from tinyml.ir import Graph, Shape, Tensor, TensorType
from tinyml.ops import catalog  # noqa: F401  (registers the readers)
from tinyml.ops.control.choose import chosen
from tinyml.ops.framework.reading import (
    MALFORMED,
    TFLITE_CUSTOM_READERS,
    TFLITE_READERS,
    Builder,
    NoOptions,
    TfliteNode,
    TfliteReader,
    reported,
)
from tinyml.ops.reshape import with_quant
from tinyml.ops.shared.real import HYBRID

VELA = "ethos-u"
"""The custom operator by which Vela replaces what an NPU computes; ``npu/`` puts ours in the same place."""


def read(
    path: Path,
    content: bytes,
    shapes: Mapping[str, Shape],
    outputs: Sequence[str] = (),
    bounds: Mapping[str, int] | None = None,
    unrolled: bool = False,
) -> Graph:
    """The whole model as a graph with the file's name; or some of its outputs, and what they need."""
    subgraphs = parse(path, content)
    if outputs:
        subgraphs = (with_outputs(subgraphs[0], outputs), *subgraphs[1:])
    return read_parsed(path, subgraphs, shapes, bounds, unrolled)


def read_parsed(
    path: Path,
    subgraphs: Sequence[Subgraph],
    shapes: Mapping[str, Shape],
    bounds: Mapping[str, int] | None = None,
    unrolled: bool = False,
) -> Graph:
    """``read`` for a file that is parsed already; the first subgraph is the model."""
    reader = _Reader(path, subgraphs)
    reader.build.bounds, reader.build.unrolls = bounds or {}, unrolled
    return reader.graph(path.stem, shapes)


_Carried = Tensor | str | None  # str: a variable


@dataclass
class _Scope:
    """A subgraph being read, with the tensors known so far."""

    subgraph: Subgraph
    number: int = 0
    values: dict[int, Tensor] = field(default_factory=dict)
    handles: dict[int, str] = field(default_factory=dict)  # tensors that name a resource variable
    poisoned: set[int] = field(default_factory=set)  # depend on something unsupported


class _Reader:
    def __init__(self, path: Path, subgraphs: Sequence[Subgraph]) -> None:
        self.path = path
        self.subgraphs = subgraphs
        self.build = Builder()
        self.variables = Variables(self.build)
        self.complaints = Complaints()
        self.initialised: set[int] = set()  # subgraphs that were called once
        self.inside: list[int] = []  # subgraphs of loops that are being read
        self.constants: dict[int, dict[int, Tensor]] = {}  # of these, for the next step
        self.fixed_shapes = True  # else the user gave other shapes or bounds than the file declares

    def graph(self, name: str, shapes: Mapping[str, Shape]) -> Graph:
        main = self.subgraphs[0]
        scope = _Scope(main)
        self.fixed_shapes = not shapes and not self.build.bounds
        records = [main.tensors[i] for i in main.inputs]
        unknown = set(shapes) - {record.name for record in records}
        if unknown:
            raise ConfigError(
                f"the model has no input called {', '.join(sorted(unknown))}",
                f"its inputs are {', '.join(record.name for record in records)}",
            )
        for index, record in zip(main.inputs, records, strict=True):
            scope.values[index] = self._input(record, shapes.get(record.name))
        self._operators(scope)
        names = {main.tensors[i].name: i for i in main.outputs}
        self.complaints.poison(name for name, i in names.items() if i in scope.poisoned)
        self.complaints.raise_if_any(list(names))
        inputs = tuple(scope.values[i].name for i in main.inputs)
        outputs = []
        for index in main.outputs:
            found = self._value(scope, index)
            if found is None:
                raise ModelError(f"nothing computes the model's output {main.tensors[index].name!r}")
            if self.fixed_shapes and found.name not in self.build.counted:
                check_output(self.path, main.tensors[index], found)
            outputs.append(found)
        check_bounds(self.build)
        states = self.variables.states()
        results = clear_rests(self.build, outputs)
        tensors, called = with_counts(
            self.build, results, unique([main.tensors[i].name for i in main.outputs])
        )
        graph = Graph(
            name,
            self.build.tensors,
            tuple(self.build.nodes),
            inputs,
            tuple(tensors),
            states,
            tuple(self.build.notes),
            open_inputs=tuple(self.build.open_inputs),
            counts=named_counts(self.build, tensors, called),
            longest_loop=self.build.longest_loop,
        )
        return finish_outputs(graph, called)

    def _input(self, record: TensorRecord, wanted: Shape | None) -> Tensor:
        type_ = type_of(record)
        senseless = [extent for extent in record.shape if extent < 1]
        if senseless and wanted is None:
            raise ModelError(
                f"input {record.name!r} has an extent of {senseless[0]}; extents are 1 or more",
                f"give the shape: --shape {record.name}=" + "x".join(str(max(d, 1)) for d in record.shape),
            )
        if wanted is not None:
            if len(wanted) != len(type_.shape):
                raise ConfigError(
                    f"--shape {record.name}={'x'.join(map(str, wanted))} contradicts the model, which has "
                    + "x".join(map(str, type_.shape))
                )
            type_ = TensorType(wanted, type_.dtype, type_.quant)
        elif len(record.signature) == len(record.shape):
            pairs = zip(record.signature, record.shape, strict=True)
            extents: list[Extent] = ["" if (wish, extent) == (-1, 1) else extent for wish, extent in pairs]
            closed(self.build, record.name, extents)
        return self.build.tensor(record.name, type_)

    # --- operators -------------------------------------------------------------------------------

    def _operators(self, scope: _Scope) -> None:
        for operator in scope.subgraph.operators:
            if any(i in scope.poisoned for i in operator.inputs):
                scope.poisoned.update(operator.outputs)
                self._complain_if_unknown(operator)
                continue
            outputs = [scope.subgraph.tensors[i] for i in operator.outputs if i >= 0]
            self.build.scope = outputs[0].name if outputs else operator.op_type
            try:
                self._operator(scope, operator)
            except UnsupportedError as error:
                self.complaints.add("", operator.op_type, error)
                scope.poisoned.update(operator.outputs)

    def _complain_if_unknown(self, operator: OperatorRecord) -> None:
        """Also after something unsupported: the message lists everything that is missing."""
        if _reader(operator) is None and operator.op_type not in _SPECIAL:
            self.complaints.add("", operator.op_type, _unknown(operator))

    def _operator(self, scope: _Scope, operator: OperatorRecord) -> None:
        def describe() -> str:
            return f"{self.path}: {operator.op_type} operator {self.build.scope!r}"

        special = None if operator.is_custom else _SPECIAL.get(operator.op_type)
        if special is not None:
            with reported(describe):
                special(self, scope, operator)
            return
        reader = _reader(operator)
        if reader is None:
            raise _unknown(operator)
        node = TfliteNode(
            operator.op_type,
            self.build.scope,
            tuple(self._value(scope, i) for i in operator.inputs),
            tuple(type_of(scope.subgraph.tensors[i]) for i in operator.outputs),
            NoOptions() if operator.options is None and not operator.is_custom else operator.options,
            operator.version,
            operator.custom_options,
        )
        self.build.names = tuple(scope.subgraph.tensors[i].name for i in operator.outputs)
        first = len(self.build.nodes)
        with reported(describe):
            results = reader(node, self.build)
        check_activation(node)
        check_types(node, self.build.layers(first))
        for index, tensor, declared in zip(operator.outputs, results, node.outputs, strict=False):
            fixed = self.fixed_shapes and tensor.name not in self.build.counted
            check_result(node, scope.subgraph.tensors[index], tensor, fixed)
            # operators that move bytes may give them a new meaning
            scope.values[index] = with_quant(self.build, tensor, declared.quant)
        self.variables.take_updates()

    def _value(self, scope: _Scope, index: int) -> Tensor | None:
        """The IR tensor for a tensor of the file: computed, constant, or a variable's present value."""
        if index < 0:
            return None
        if index in scope.values:
            return scope.values[index]
        record = scope.subgraph.tensors[index]
        type_ = type_of(record)
        if record.is_variable:
            if record.data is not None:  # LiteRT refuses it, too
                raise ModelError(f"{self.path}: tensor {record.name!r} is a variable and has data", MALFORMED)
            return self.variables.read(f"tensor {scope.number}:{index}", record.name, type_)
        if record.data is None and 0 not in type_.shape:
            raise ModelError(f"{self.path}: nothing computes tensor {record.name!r}")
        data = data_of(record, type_)
        if record.blocks is not None:
            data = real_data(record, record.blocks, data, scope.subgraph.tensors)
            self.build.note(HYBRID)
        scope.values[index] = self.build.constant(data, record.name, type_.quant)
        return scope.values[index]

    # --- resource variables ------------------------------------------------------------------------

    def _var_handle(self, scope: _Scope, operator: OperatorRecord) -> None:
        container, name = operator.options.Container() or b"", operator.options.SharedName() or b""
        scope.handles[operator.outputs[0]] = f"{container.decode()}/{name.decode()}"

    def _read_variable(self, scope: _Scope, operator: OperatorRecord) -> None:
        output = operator.outputs[0]
        type_ = type_of(scope.subgraph.tensors[output])
        key = self._handle(scope, operator)
        scope.values[output] = self.variables.read(key, key.strip("/"), type_)

    def _assign_variable(self, scope: _Scope, operator: OperatorRecord) -> None:
        value = self._value(scope, operator.inputs[1])
        if value is not None:
            self.variables.assign(self._handle(scope, operator), value)

    def _handle(self, scope: _Scope, operator: OperatorRecord) -> str:
        if operator.inputs[0] not in scope.handles:
            raise ModelError(f"{self.path}: {operator.op_type} on something that is not a variable")
        return scope.handles[operator.inputs[0]]

    def _call_once(self, scope: _Scope, operator: OperatorRecord) -> None:
        """The subgraph that runs before the first inference: it gives variables their first value."""
        index = operator.options.InitSubgraphIndex()
        if not 0 < index < len(self.subgraphs):
            raise ModelError(f"{self.path}: CALL_ONCE of subgraph {index}, which does not exist")
        if index in self.initialised:  # once, even if the operator claims it again
            return
        self.initialised.add(index)
        with self.variables.initialising():
            self._operators(_Scope(self.subgraphs[index], index))

    # --- loops -------------------------------------------------------------------------------------

    def _while(self, scope: _Scope, operator: OperatorRecord) -> None:
        """A loop, or its steps one by one; what it carries are tensors and variables."""
        condition, body = operator.options.CondSubgraphIndex(), operator.options.BodySubgraphIndex()
        carried = [scope.handles.get(i) or self._value(scope, i) for i in operator.inputs]
        tensors = [value for value in carried if isinstance(value, Tensor)]
        if len(tensors) == len(carried):
            found = self._rolled(condition, body, tensors)
            if found is not None:
                self._bind(scope, operator.outputs, found)
                return
        self._bind(scope, operator.outputs, self._steps(condition, body, carried))

    def _steps(
        self, condition: int, body: int, carried: Sequence[_Carried], at_most: int | None = None
    ) -> Sequence[_Carried]:
        """All steps, or the first ones."""
        steps = 0
        while steps != at_most and goes_on(_tensor(self._called(condition, carried)), steps):
            carried = self._called(body, carried)
            steps += 1
        self.build.longest_loop = max(self.build.longest_loop, steps)
        return carried

    def _rolled(self, condition: int, body: int, carried: Sequence[Tensor]) -> list[Tensor] | None:
        """The results of a loop that stays one; None if its steps are to be read one by one."""
        parts = [self.subgraphs[i] for i in (condition, body) if 0 < i < len(self.subgraphs)]
        if len(parts) < 2 or any(o.op_type in EFFECTS for part in parts for o in part.operators):
            return None
        ends = zip(parts[1].inputs, parts[1].outputs, strict=False)
        fixed = [place for place, (old, new) in enumerate(ends) if old == new]

        def asks(own: Sequence[Tensor]) -> Tensor:
            again = _tensor(self._called(condition, passed_on(fixed, carried, own)))
            if again is None:
                raise UnsupportedError("a loop without a condition")
            return again

        def turn(own: Sequence[Tensor], _: Sequence[Tensor]) -> Turn:
            again = asks(own)
            results = _tensors(self._called(body, passed_on(fixed, carried, own)))
            return Turn(again, [x for i, x in enumerate(results) if i not in fixed], ())

        def unroll(most: int) -> list[Tensor]:
            return _tensors(self._steps(condition, body, carried, most))

        attempt = Attempt(self.build, self.complaints, self.variables, self)
        first = [x for i, x in enumerate(carried) if i not in fixed]
        found = rolled(self.build, attempt, Outline(first, (), turn, unroll, asks=asks))
        return None if found is None else passed_on(fixed, carried, found)

    def _if(self, scope: _Scope, operator: OperatorRecord) -> None:
        """The branch that a constant condition takes; or both, of which a run takes one."""
        condition, *inputs = operator.inputs
        operands = [scope.handles.get(i) or self._value(scope, i) for i in inputs]
        numbers = operator.options.ThenSubgraphIndex(), operator.options.ElseSubgraphIndex()
        truth = self._value(scope, condition)
        if truth is None:
            raise ModelError(f"{self.path}: an IF without a condition", MALFORMED)
        if truth.data is not None:
            number = numbers[0] if truth.data.reshape(-1).all() else numbers[1]
            self._bind(scope, operator.outputs, self._called(number, operands))
            return
        for number in numbers:
            if 0 < number < len(self.subgraphs) and any(
                inner.op_type in EFFECTS for inner in self.subgraphs[number].operators
            ):
                raise UnsupportedError("an IF whose branches assign variables is not supported")
        then, other = (_tensors(self._called(number, operands)) for number in numbers)
        self._bind(scope, operator.outputs, chosen(self.build, truth, then, other))

    def _called(self, number: int, operands: Sequence[_Carried]) -> list[_Carried]:
        if not 0 < number < len(self.subgraphs) or number in self.inside:
            raise ModelError(
                f"{self.path}: a loop runs subgraph {number}, which does not exist or contains the loop"
            )
        subgraph = self.subgraphs[number]
        scope = _Scope(subgraph, number, dict(self.constants.get(number, {})))
        self._bind(scope, subgraph.inputs, operands)
        limits.check("depth", len(self.inside) + 1, f"subgraph {number}")
        self.inside.append(number)
        try:
            self._operators(scope)
        finally:
            self.inside.pop()
        if any(i in scope.poisoned for i in subgraph.outputs):
            raise UnsupportedError("a part of the loop is not supported")
        results = [scope.handles.get(i) or self._value(scope, i) for i in subgraph.outputs]
        kept = [i for i in scope.values if subgraph.tensors[i].data is not None]
        self.constants[number] = {i: scope.values[i] for i in kept}
        return results

    def _bind(self, scope: _Scope, indices: Sequence[int], values: Sequence[_Carried]) -> None:
        """Give tensors of a subgraph values from outside, whose bytes it may interpret in its own way."""
        for index, value in zip(indices, values, strict=True):
            if isinstance(value, str):
                scope.handles[index] = value
                continue
            type_ = type_of(scope.subgraph.tensors[index])
            if value is None or value.dtype is not type_.dtype:
                raise ModelError(f"{self.path}: a variable changes its type in a loop", MALFORMED)
            scope.values[index] = with_quant(self.build, value, type_.quant)


def _tensor(results: Sequence[_Carried]) -> Tensor | None:
    """The single result of a loop's condition."""
    return results[0] if len(results) == 1 and isinstance(results[0], Tensor) else None


def _tensors(results: Sequence[_Carried]) -> list[Tensor]:
    """The results of a branch; variables are not among them."""
    found = [result for result in results if isinstance(result, Tensor)]
    if len(found) != len(results):
        raise UnsupportedError("an IF whose branches return variables is not supported")
    return found


_SPECIAL = {
    "IF": _Reader._if,
    "VAR_HANDLE": _Reader._var_handle,
    "READ_VARIABLE": _Reader._read_variable,
    "ASSIGN_VARIABLE": _Reader._assign_variable,
    "CALL_ONCE": _Reader._call_once,
    "WHILE": _Reader._while,
}


def _reader(operator: OperatorRecord) -> TfliteReader | None:
    """A custom operator with the name of a builtin one is not that operator."""
    return (TFLITE_CUSTOM_READERS if operator.is_custom else TFLITE_READERS).get(operator.op_type)


def _unknown(operator: OperatorRecord) -> UnsupportedError:
    if operator.is_custom and operator.op_type == VELA:
        return UnsupportedError(
            "the file was compiled by Vela: the operators that the NPU computes are no longer in it",
            "use the file from before Vela, with npu: in tinyml.yaml or --npu",
        )
    if operator.is_custom:
        return UnsupportedError(
            "no reader for this custom operator",
            "convert the model with builtin operators only, or write one: docs/operators.md",
        )
    return UnsupportedError(f"operator {operator.op_type} is not supported", tflite_reason(operator.op_type))
