# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The intermediate representation: tensors, nodes, one graph. Frozen, typed, format-neutral.

Activations of spatial operators are NHWC. A quantised tensor carries its own parameters, so an
operator on int8 tensors *is* the integer operator: there is no second set of node types.
Memory that survives between two runs is a ``State``: a tensor that is read as if it were an input
and, at the end of the run, takes the value of another tensor.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tinyml.hooks import Affine, Border, RowWindow

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
T = TypeVar("T")


class DType(enum.Enum):
    """Element types; the value is numpy's name for it."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.value)

    @property
    def bytes(self) -> int:
        return self.numpy.itemsize

    @property
    def c(self) -> str:
        """The C type that holds one element."""
        return {"float32": "float", "float64": "double", "bool": "bool"}.get(self.value, f"{self.value}_t")

    @property
    def is_float(self) -> bool:
        return self in (DType.FLOAT32, DType.FLOAT64)

    @property
    def is_signed(self) -> bool:
        return self.is_float or self.value.startswith("int")

    @property
    def is_integer(self) -> bool:
        return not self.is_float and self is not DType.BOOL

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        info = np.iinfo(self.numpy)
        return int(info.min), int(info.max)

    @staticmethod
    def of(array: Array) -> DType:
        return DType(array.dtype.name)


@dataclass(frozen=True)
class Quant:
    """Affine quantisation: real = scale * (stored - zero_point); per tensor, or per slice of ``axis``."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def per_channel(self) -> bool:
        return self.axis is not None

    @property
    def scale(self) -> float:
        """The one scale of a per-tensor quantisation."""
        if self.per_channel:
            raise ValueError("per-channel quantisation has no single scale")
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        if self.per_channel:
            raise ValueError("per-channel quantisation has no single zero point")
        return self.zero_points[0]

    @staticmethod
    def per_tensor(scale: float, zero_point: int) -> Quant:
        return Quant((float(scale),), (int(zero_point),))


@dataclass(frozen=True)
class TensorType:
    """What shape inference yields: everything about a tensor but its name and value."""

    shape: Shape
    dtype: DType
    quant: Quant | None = None


@dataclass(frozen=True, eq=False)
class Tensor:
    """A named value. With ``data`` it is a constant and lives in flash."""

    name: str
    shape: Shape
    dtype: DType
    quant: Quant | None = None
    data: Array | None = None

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def value(self) -> Array:
        """The data of a constant."""
        if self.data is None:
            raise ValueError(f"tensor {self.name!r} is not a constant")
        return self.data

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @cached_property  # the planner reads it a million times
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype, self.quant)

    @staticmethod
    def of(name: str, type_: TensorType) -> Tensor:
        return Tensor(name, type_.shape, type_.dtype, type_.quant)

    @staticmethod
    def constant(name: str, data: Array, quant: Quant | None = None) -> Tensor:
        frozen = np.ascontiguousarray(data).reshape(data.shape)
        frozen.setflags(write=False)
        return Tensor(name, tuple(frozen.shape), DType.of(frozen), quant, frozen)


@dataclass(frozen=True)
class View:
    """``inner`` may live inside ``outer``, ``offset_bytes`` from its start, instead of being copied."""

    inner: str
    outer: str
    offset_bytes: int = 0


OperandRule: TypeAlias = Callable[["Layer[Any]"], bool]
"""Returns whether the inputs of a layer, whose outputs are not known yet, are fine. Its docstring is the
message and the documentation. Rules are asked in order, so one may rely on those before it."""


@dataclass(frozen=True)
class Op:
    """Base of all operators. A subclass in ``ops/`` holds the attributes as dataclass fields."""

    operands: ClassVar[tuple[OperandRule, ...]] = ()  # what the inputs must be: see ``rules``
    folds: ClassVar[bool] = True  # may be computed at import when all inputs are constants
    movement: ClassVar[bool] = False  # outputs are elements of input 0, unchanged: works on any type
    elementwise: ClassVar[bool] = False  # an output element depends on the operands at its place alone

    @property
    def kind(self) -> str:
        return type(self).__name__

    def label(self) -> str:
        """A short lower-case word for names in the generated C."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.kind).lower()

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        """Shapes and types of the outputs (the importer sets the quantisation of outputs)."""
        raise NotImplementedError(self.kind)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        """The operator in numpy: both the test oracle and the constant folder."""
        raise NotImplementedError(self.kind)

    def macs(self, layer: Layer) -> int:
        """Multiply-accumulates of one run."""
        return 0

    def views(self, layer: Layer) -> tuple[View, ...]:
        """Pairs of tensors that can share bytes, so that the operator, or part of it, needs no copy."""
        return ()

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        """The operator that gives ``transpose(y, perm)`` when every input is transposed by ``perm``.

        Lets the layout pass move a transpose past this operator; None if that is not possible.
        """
        return None

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        """The operator and operands that compute on these tensors what this one computes on real numbers.

        The QDQ fusion calls this with the tensors before the Dequantize and after the Quantize nodes.
        Constants among the returned operands may be new. None if there is no integer form.
        """
        return None

    @property
    def limits(self) -> tuple[float, float]:
        """The interval of real numbers that output 0 cannot leave (see ``ops/shared/clamped.py``)."""
        return (-math.inf, math.inf)

    def limited(self, low: float, high: float) -> Op | None:
        """The operator with output 0 clamped to these limits as well; None if it cannot do that."""
        return None

    def bordered(self, x: Tensor, border: Border) -> Op | None:
        """The operator that computes from ``x`` what this one computes from ``x`` in a border of zeros."""
        return None

    def channelwise(self, layer: Layer) -> bool:
        """Whether a channel (slice of the last axis) of the output depends on that of the inputs alone."""
        return self.elementwise

    def carried_channels(self, layer: Layer) -> Sequence[Array] | None:
        """Where the elements of the inputs go, if they keep their values and their channels stay whole.

        One array per input, with the channels of the input as its last axis: the output channels that hold
        their elements. None if the operator computes new values or splits channels.
        """
        return None

    def with_channels(self, channels: int) -> Op:
        """The operator after unused channels were removed, if its attributes state their number."""
        return self

    def identity_of(self, layer: Layer) -> int | None:
        """The input whose elements the output has, all and in order; None if the operator changes any.

        Types and quantisations may still differ.
        """
        return None

    def affine(self, layer: Layer) -> Affine | None:
        """What the operator does to its one variable operand, if that is a factor and an offset."""
        return None

    def row_window(self, layer: Layer) -> RowWindow | None:
        """How the operator moves down the rows of its NHWC operands; None if it does not.

        With two operands, both are variable and have the shape of the output. With this hook, and a kernel
        that is ``in_bands``, an operator can be computed a few rows at a time.
        """
        return None

    def with_row_padding(self, top: int, bottom: int) -> Op:
        """The operator on a part of the rows, with so much padding before and after them."""
        return self

    def attributes(self) -> dict[str, Any]:
        """The attributes by name, for the text form and for error messages."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def given(operands: Sequence[T | None], index: int) -> T:
    """Operand ``index`` (a tensor or an array), which must be present."""
    operand = operands[index]
    if operand is None:
        raise ValueError(f"operand {index} is absent")
    return operand


if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    O_co = DefaultedTypeVar("O_co", bound=Op, default=Op, covariant=True)
else:  # typing.TypeVar knows defaults from Python 3.13 on; at run time nothing depends on them
    O_co = TypeVar("O_co", covariant=True)


@dataclass(frozen=True)
class Node:
    """One application of an operator; names refer to tensors of the graph. ``""`` is an absent input."""

    name: str
    op: Op
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Layer(Generic[O_co]):
    """A node with its tensors looked up: all that an operator or a kernel may know.

    ``Layer[Conv]`` is a layer whose operator is known to be a Conv; plain ``Layer`` has any operator.
    """

    name: str
    op: O_co
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]

    @staticmethod
    def of(node: Node, tensors: Mapping[str, Tensor]) -> Layer:
        return Layer(
            node.name,
            node.op,
            tuple(tensors[name] if name else None for name in node.inputs),
            tuple(tensors[name] for name in node.outputs),
        )

    def input(self, index: int) -> Tensor:
        """Input ``index``, which must be present."""
        tensor = self.inputs[index] if index < len(self.inputs) else None
        if tensor is None:
            raise ValueError(f"{self.op.kind} {self.name!r} has no input {index}")
        return tensor

    def has_input(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    def computed(self, operands: Sequence[Array | None]) -> list[Array]:
        """The outputs in numpy, each with the type and the shape of its tensor."""
        arrays = self.op.evaluate(self, operands)
        return [
            np.asarray(array, tensor.dtype.numpy).reshape(tensor.shape)
            for tensor, array in zip(self.outputs, arrays, strict=True)
        ]

    def folded(self) -> tuple[Tensor, ...] | None:
        """The outputs as constants, if all inputs are."""
        if any(tensor is not None and not tensor.is_constant for tensor in self.inputs):
            return None
        arrays = self.computed([None if tensor is None else tensor.value for tensor in self.inputs])
        return tuple(
            Tensor.constant(tensor.name, array, tensor.quant)
            for tensor, array in zip(self.outputs, arrays, strict=True)
        )


@dataclass(frozen=True)
class State:
    """Memory that persists from one run to the next."""

    tensor: str  # read: the value from the previous run
    update: str  # the tensor whose value it takes at the end of the run
    initial: Array | None = field(default=None, compare=False)  # None: all elements zero_point or 0


@dataclass(frozen=True)
class Graph:
    """A whole model. Nodes are in an order in which they can run."""

    name: str
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()
    notes: tuple[str, ...] = ()  # what users must know about how the model was read
    labels: tuple[str, ...] = ()  # names of the classes, in the order of their numbers
    open_inputs: tuple[str, ...] = ()  # whose shape the file leaves open; --shape sets it

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))

    def layer(self, node: Node) -> Layer:
        return Layer.of(node, self.tensors)

    def layers(self) -> Iterator[Layer]:
        return (self.layer(node) for node in self.nodes)

    def producers(self) -> dict[str, Node]:
        """Tensor name -> the node that computes it."""
        return {name: node for node in self.nodes for name in node.outputs}

    def consumers(self) -> dict[str, list[Node]]:
        """Tensor name -> the nodes that read it, in order (graph outputs are not nodes)."""
        readers: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    readers[name].append(node)
        return readers

    def kept(self) -> set[str]:
        """Tensors that are used outside the nodes: outputs and state updates."""
        return {*self.outputs, *(state.update for state in self.states)}

    def with_nodes(self, nodes: Iterable[Node], new: Iterable[Tensor] = ()) -> Graph:
        """The same graph with other nodes and ``new`` or replaced tensors; unused tensors go."""
        nodes = tuple(nodes)
        table = {**self.tensors, **{tensor.name: tensor for tensor in new}}
        used = {name for node in nodes for name in (*node.inputs, *node.outputs) if name}
        used |= {*self.inputs, *self.kept(), *(state.tensor for state in self.states)}
        return replace(self, nodes=nodes, tensors={k: v for k, v in table.items() if k in used})
