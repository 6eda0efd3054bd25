# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The interface of readers in ``ops/``, which translate the nodes of a model file.

A reader takes one node of ONNX or TFLite and a ``Builder``, adds operators, and returns the tensors of the
node's outputs. The importers find readers by the names they were registered under.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from tinyml.base import limits
from tinyml.base.errors import ModelError, TinymlError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Node, Op, Quant, Tensor, TensorType
from tinyml.ir.constraints import operand_problem, quantisation_problem
from tinyml.ops.framework.counted import ADVICE, Counted, carried
from tinyml.ops.framework.narrow import NARROW, Narrow
from tinyml.ops.framework.registration import check_new, outside_fault

ACTIVATION_LIMITS = ((-np.inf, np.inf), (0.0, np.inf), (-1.0, 1.0), (0.0, 6.0))
"""TFLite's fused activations that are a clamp, by their number: none, RELU, RELU_N1_TO_1, RELU6."""


BROKEN = (
    struct.error,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a reader raises on a node that makes no sense."""

MALFORMED = "the file is malformed: export or convert the model again"


@contextmanager
def reported(describe: Callable[[], str]) -> Iterator[None]:
    """Wraps a call of a reader: what it raises on a node that makes no sense becomes a message."""
    try:
        yield
    except TinymlError:
        raise
    except BROKEN as error:
        if fault := outside_fault(error):
            raise fault from error
        detail = str(error) or type(error).__name__
        raise ModelError(f"{describe()} is invalid: {detail}", MALFORMED) from error


class Builder:
    """Collects the tensors and nodes of a graph; operators on constants are computed at once."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self._producers: dict[str, Node] = {}
        self._counter = 0
        self._elements = 0  # of all tensors so far
        self.scope = ""  # name of the source node being read
        self.updates: dict[str, Tensor] = {}  # variables written by the operator being read
        self.own_states: list[Tensor] = []  # that operators keep without a variable in the file
        self.states: set[str] = set()  # inputs of the file that receive an output of the previous run
        self.filled: tuple[Tensor, int, int] | None = None  # rows of caches, rows of a run, rows at most
        self.notes: dict[str, None] = {}  # what users must know, each once and in order
        self.longest_loop = 0  # steps of one that was unrolled
        self.unrolls = False  # also long loops
        self.open_inputs: dict[str, str] = {}  # inputs whose shape the model leaves open, and the note on it
        self.narrow: dict[str, Narrow] = {}  # tensors that had fewer than eight bits in the file
        self.labels: tuple[str, ...] = ()  # names of the classes, if an operator has them
        self.counted: dict[str, Counted] = {}  # tensors with fewer results than room
        self.bounds: Mapping[str, int] = {}  # that the user states, by the name of a node or of its outputs
        self.bounded: dict[str, int] = {}  # nodes that have a bound, and how many results they can have
        self.names: tuple[str, ...] = ()  # of the outputs of the source node being read
        self.aliases: dict[str, tuple[str, ...]] = {}  # names of the outputs of nodes that have a bound

    def fresh(self, hint: str) -> str:
        """A tensor name not yet in use."""
        name = hint
        while not name or name in self.tensors:
            self._counter += 1
            name = f"{hint}.{self._counter}"
        return name

    def tensor(self, name: str, type_: TensorType) -> Tensor:
        """A tensor that no node computes: an input or a state."""
        self._check(name, type_)
        tensor = Tensor.of(self.fresh(name), type_)
        self.tensors[tensor.name] = tensor
        return tensor

    def state(self, name: str, type_: TensorType) -> Tensor:
        """What an operator keeps from run to run, zero at first; ``update`` gives it its next value."""
        tensor = self.tensor(name, type_)
        self.own_states.append(tensor)
        return tensor

    def note(self, text: str) -> None:
        """Something that a user must know about how the model is read; `compile` and `verify` print it."""
        self.notes.setdefault(text)

    def update(self, variable: Tensor, value: Tensor) -> None:
        """From here on, and in the next run, the variable that ``variable`` was read from is ``value``."""
        self.updates[variable.name] = value

    def constant(self, data: Array, hint: str = "", quant: Quant | None = None) -> Tensor:
        data, name = np.asarray(data), self.fresh(hint or f"{self.scope}/const")
        kind = NARROW.get(data.dtype.name)
        if kind is not None:
            data, self.narrow[name] = data.astype(kind.holder.numpy), kind
        tensor = Tensor.constant(name, data, quant)
        self._check(tensor.name, tensor.type)
        self.tensors[tensor.name] = tensor
        return tensor

    def add(
        self,
        op: Op,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[TensorType] | None = None,
        counts: bool = False,
    ) -> tuple[Tensor, ...]:
        """Apply ``op``; ``outputs`` overrides inferred type and quantisation, never the shape.

        ``counts``: the operator knows how many results its operands have.
        """
        limits.check_time()
        problem = operand_problem(op, inputs)
        if problem is not None:
            raise ModelError(f"{op.kind} {self.scope!r}: {problem}", MALFORMED)
        types = op.infer(inputs)
        if outputs is not None:
            types = tuple(
                TensorType(inferred.shape, given.dtype, given.quant)
                for inferred, given in zip(types, outputs, strict=True)
            )
        for type_ in types:
            self._check(self.scope or op.kind, type_)
        results = tuple(Tensor.of(self.fresh(f"{self.scope}/{op.kind}"), t) for t in types[:1])
        for position, type_ in enumerate(types[1:], start=1):
            results += (Tensor.of(self.fresh(f"{self.scope}/{op.kind}:{position}"), type_),)
        node = Node(
            self.scope or op.kind,
            op,
            tuple(tensor.name if tensor is not None else "" for tensor in inputs),
            tuple(tensor.name for tensor in results),
        )
        layer = Layer(node.name, op, tuple(inputs), results)
        limits.check("multiplications", op.macs(layer), f"{op.kind} {node.name!r}")
        if self.counted and not counts:
            for result, known in zip(results, carried(layer, self.counted), strict=True):
                if known is not None:
                    self.counted[result.name] = known
        folded = layer.folded() if op.folds else None
        if folded is not None:
            results = folded
        else:
            self.nodes.append(node)
            self._producers.update({tensor.name: node for tensor in results})
        self.tensors.update({tensor.name: tensor for tensor in results})
        return results

    def layers(self, first: int) -> list[Layer]:
        """The nodes from number ``first`` on, with their tensors."""
        return [Layer.of(node, self.tensors) for node in self.nodes[first:]]

    def bound(self, most: int) -> int:
        """How many results the source node being read may have: what the user states, or ``most``."""
        self.bounded[self.scope], self.aliases[self.scope] = most, self.names
        stated = [self.bounds[name] for name in (self.scope, *self.names) if name in self.bounds]
        return min(stated[0], most) if stated else most

    def most_steps(self, known: int | None) -> int | None:
        """How many steps the loop being read may have: what the user states, or what is ``known``."""
        most = known if known is not None else 2**31 - 1
        bound = self.bound(most)
        return bound if known is not None or bound < most else None

    def count(self, tensor: Tensor, axis: int, number: Tensor) -> None:
        """Only the first ``number`` elements of a tensor along ``axis`` are results."""
        self.counted[tensor.name] = Counted(axis, number.name)

    def count_along(self, tensor: Tensor, axis: int) -> Tensor | None:
        """How many elements of a tensor along ``axis`` are results; None if all of them are."""
        known = self.counted.get(tensor.name)
        if known is None:
            return None
        if known.axis != axis:
            raise UnsupportedError(
                f"{self.scope!r} reads {tensor.name!r}, whose extent on axis {known.axis} is known at run "
                "time alone",
                ADVICE,
            )
        return self.tensors[known.count]

    def _check(self, name: str, type_: TensorType) -> None:
        """Refuse a tensor that cannot be, or that is larger than the limits allow, before it is made."""
        limits.check_shape(type_.shape, f"tensor {name!r}")
        self._elements += math.prod(type_.shape)
        limits.check("total_elements", self._elements, f"the model, up to {name!r}")
        limits.check("nodes", len(self.nodes), f"the model, up to {name!r}")
        problem = quantisation_problem(type_)
        if problem is not None:
            raise ModelError(f"tensor {name!r} {problem}", MALFORMED)

    def kind(self, tensor: Tensor) -> DType | Narrow:
        """The element type that a tensor had in the file."""
        return self.narrow.get(tensor.name, tensor.dtype)

    def producer(self, tensor: Tensor) -> Node | None:
        """The node that computes a tensor; None for inputs, states and constants."""
        return self._producers.get(tensor.name)

    def add1(self, op: Op, inputs: Sequence[Tensor | None], output: TensorType | None = None) -> Tensor:
        """``add`` for an operator with one output."""
        return self.add(op, inputs, None if output is None else [output])[0]


class Operands:
    """The inputs of a node by their number. Each format has a word for a node, and advice of its own."""

    word: ClassVar[str]
    advice: ClassVar[str]  # where a value has to be known
    op_type: str
    name: str
    inputs: tuple[Tensor | None, ...]

    def input(self, index: int) -> Tensor:
        tensor = self.optional(index)
        if tensor is None:
            raise ModelError(f"{self.op_type} {self.word} {self.name!r} lacks input {index}")
        return tensor

    def optional(self, index: int) -> Tensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def const(self, index: int) -> Array:
        """The value of an input that must be known at compile time."""
        tensor = self.input(index)
        if tensor.data is None:
            raise UnsupportedError(
                f"{self.op_type} {self.word} {self.name!r}: its input {tensor.name!r} must be a constant",
                self.advice,
            )
        return tensor.data


@dataclass(frozen=True)
class OnnxNode(Operands):
    """A node of an ONNX graph with its inputs looked up and its attributes as Python values."""

    word = "node"
    advice = "export the model with fixed shapes, or simplify it so that the value is known"

    op_type: str
    domain: str  # "" for the standard operators
    name: str
    opset: int  # version of the node's domain
    inputs: tuple[Tensor | None, ...]
    output_names: tuple[str, ...]  # "" for an output that is not used
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def attr(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        return tuple(int(v) for v in self.attributes.get(name, default))

    def wants(self, index: int) -> bool:
        """Whether output ``index`` is used."""
        return index < len(self.output_names) and bool(self.output_names[index])


@dataclass(frozen=True)
class TfliteNode(Operands):
    """An operator of a TFLite subgraph; ``options`` is the table of the ``tflite`` schema package."""

    word = "operator"
    advice = "convert the model with fixed shapes"

    op_type: str  # as in the schema: CONV_2D
    name: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[TensorType, ...]  # as the file declares them
    options: Any = None
    version: int = 1
    custom_options: bytes = b""  # of a custom operator, as its author encoded them
    asked: set[str] = field(default_factory=set, compare=False)  # what a reader has looked at

    @property
    def ignored_activation(self) -> bool:
        """Whether there is a fused activation function that the reader did not look at."""
        fused = getattr(self.options, "FusedActivationFunction", None)
        return fused is not None and bool(fused()) and "activation" not in self.asked

    @property
    def activation(self) -> int:
        """The number of the fused activation function; 0 for none."""
        self.asked.add("activation")
        fused = getattr(self.options, "FusedActivationFunction", None)
        return int(fused()) if fused is not None else 0

    @property
    def clamp(self) -> tuple[float, float]:
        """The fused activation function as limits on real numbers."""
        code = self.activation
        if code >= len(ACTIVATION_LIMITS):
            raise UnsupportedError(
                f"{self.op_type} operator {self.name!r}: fused activation number {code} is not supported",
                "RELU, RELU6 and RELU_N1_TO_1 can be fused; convert others as operators of their own",
            )
        return ACTIVATION_LIMITS[code]


class NoOptions:
    """In place of a table of options that the file does not have: all numbers are 0, as in LiteRT."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_: 0


OnnxReader = Callable[[OnnxNode, Builder], Sequence[Tensor]]
TfliteReader = Callable[[TfliteNode, Builder], Sequence[Tensor]]

ONNX_READERS: dict[tuple[str, str], OnnxReader] = {}
TFLITE_READERS: dict[str, TfliteReader] = {}
TFLITE_CUSTOM_READERS: dict[str, TfliteReader] = {}


def onnx_op(*op_types: str, domain: str = "") -> Callable[[OnnxReader], OnnxReader]:
    """Register a reader for one or more ONNX operators."""

    def register(reader: OnnxReader) -> OnnxReader:
        for op_type in op_types:
            check_new(ONNX_READERS.get((domain, op_type)), reader, f"the reader of ONNX operator {op_type}")
            ONNX_READERS[(domain, op_type)] = reader
        return reader

    return register


def tflite_op(*op_types: str) -> Callable[[TfliteReader], TfliteReader]:
    """Register a reader for one or more TFLite operators."""

    def register(reader: TfliteReader) -> TfliteReader:
        for op_type in op_types:
            check_new(TFLITE_READERS.get(op_type), reader, f"the reader of TFLite operator {op_type}")
            TFLITE_READERS[op_type] = reader
        return reader

    return register


def tflite_custom_op(*names: str) -> Callable[[TfliteReader], TfliteReader]:
    """Register a reader for custom operators of TFLite, by the names that their author gave them."""

    def register(reader: TfliteReader) -> TfliteReader:
        for name in names:
            known = TFLITE_CUSTOM_READERS.get(name)
            check_new(known, reader, f"the reader of the custom TFLite operator {name}")
            TFLITE_CUSTOM_READERS[name] = reader
        return reader

    return register


def dtype_of(name: str) -> DType:
    """The element type called ``name`` by numpy, or a clear refusal."""
    try:
        return DType(name)
    except ValueError:
        raise UnsupportedError(
            f"element type {name} is not supported",
            f"use one of {', '.join(d.value for d in DType)}",
        ) from None
