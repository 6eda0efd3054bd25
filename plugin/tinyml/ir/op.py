# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators: the base class with its hooks, nodes that apply one, and layers with their tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir.hook_types import Affine, Border, RowWindow, Steps
from tinyml.ir.tensor import Array, Tensor, TensorType

T = TypeVar("T")


@dataclass(frozen=True)
class View:
    """``inner`` may live inside ``outer``, ``offset_bytes`` from its start, instead of being copied."""

    inner: str
    outer: str
    offset_bytes: int = 0


Constraint: TypeAlias = Callable[["Layer[Any]"], bool]
"""Returns whether a layer is supported. Its docstring is the message and the documentation. Constraints are
checked in order, so one may rely on those before it. Those of operands see a layer without outputs."""


@dataclass(frozen=True)
class Op:
    """Base of all operators. A subclass in ``ops/`` holds the attributes as dataclass fields."""

    operands: ClassVar[tuple[Constraint, ...]] = ()  # what the inputs must be: see ``constraints``
    folds: ClassVar[bool] = True  # may be computed at import when all inputs are constants
    depends_on_cpu: ClassVar[bool] = False  # the last bit of its float32 in numpy: BLAS, vectorised functions
    movement: ClassVar[bool] = False  # outputs are elements of input 0, unchanged: works on any type
    elementwise: ClassVar[bool] = False  # an output element depends on the operands at its place alone
    clears: ClassVar[bool] = False  # outputs with fewer results than room have zeros after the last
    spare_outputs: ClassVar[bool] = (
        False  # the integer form needs no Quantize after outputs that nothing reads
    )
    chooses: ClassVar[bool] = False  # the truth of input 0 decides whether input 1 or input 2 is used

    @property
    def kind(self) -> str:
        return type(self).__name__

    def label(self) -> str:
        """A short lower-case word for names in the generated C."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.kind).lower()

    @property
    def inner_graph(self) -> Any:
        """The ``Graph`` that the operator runs, on which passes work like on the model's; None for most."""
        return None

    def with_inner_graph(self, graph: Any) -> Op:
        """The operator with another graph inside, which has the same inputs, outputs and states."""
        raise NotImplementedError(self.kind)

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

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        """Whether it does on these stored integers, all of one quantisation per tensor, what it does on the
        real numbers that they stand for: outputs are elements of the inputs, chosen by place or by order, or
        values that the integers represent exactly.

        Lets quantisation pass through the operator in both directions. ``quantized`` has the integer form.
        """
        return False

    def on_integers(
        self, inputs: Sequence[Tensor | None], stored: Tensor
    ) -> tuple[Op, Sequence[Array]] | None:
        """The operator that computes from ``stored`` integers what this one computes from them as input 0
        after a Dequantize, and its other operands, all constants; None if there is no such form.
        """
        return None

    def reads_stored(self, inputs: Sequence[Tensor | None]) -> bool:
        """Whether it computes from these stored integers, of several operands, what it computes from the real
        numbers that they stand for, so that they need no Dequantize.
        """
        return False

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

    def steps_of(self, layer: Layer) -> Steps | None:
        """The outputs with all steps and with the last one; None if the operator has no such pair."""
        return None

    def without_steps(self) -> Op:
        """The operator without its output of all steps, if it has a pair of such outputs."""
        raise NotImplementedError(self.kind)

    def identity_of(self, layer: Layer) -> int | None:
        """The input whose elements the output has, all and in order; None if the operator changes any.

        Types and quantisations may still differ.
        """
        return None

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        """For each output the axis along which its elements depend on those of input ``index`` along
        ``axis``, each on the one at its place and on no other; None if the operator mixes them.
        """
        if not self.elementwise:
            return None
        behind = len(layer.input(index).shape) - axis  # operands are aligned at their last axes
        return tuple(len(output.shape) - behind for output in layer.outputs)

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        """The integers that input ``index`` has a meaning for, if not any: indices, lengths, axes.

        Samples are drawn from them. Integers that mean nothing are among them where a model may have them.
        """
        return None

    def affine(self, layer: Layer) -> Affine | None:
        """What the operator does to its one variable operand, if that is a factor and an offset."""
        return None

    def other_forms(self, layer: Layer) -> Iterable[tuple[Op, Sequence[Tensor | None]]]:
        """Other operators with the same outputs, bit for bit, and their inputs, whose constants may be new.

        The compiler takes one whose kernel is clearly faster.
        """
        return ()

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        """How the operator moves along axis 1 or 2 of its NHWC operands; None if it does not.

        With two operands, both are variable and have the shape of the output. With this hook, and a kernel
        that is ``in_bands``, an operator can be computed a few rows at a time, or a few columns.
        """
        return None

    def with_padding(self, axis: int, before: int, after: int) -> Op:
        """The operator on a part of axis 1 or 2, with this much padding before and after that part."""
        return self

    def with_window(self, axis: int, window: RowWindow) -> Op | None:
        """The operator whose window moves like this along axis 1 or 2 of its NHWC operands, with the same
        kernel; None if there is none.
        """
        return None

    @property
    def by_rows(self) -> bool:
        """Whether the application feeds input 0 in rows, so that it is never in memory as a whole."""
        return False

    def attributes(self) -> dict[str, Any]:
        """The attributes by name, for the text form and for error messages."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def given(operands: Sequence[T | None], index: int) -> T:
    """Operand ``index`` (a tensor or an array), which must be present."""
    operand = operands[index]
    if operand is None:
        raise ValueError(f"operand {index} is absent")
    return operand


def in_double(array: Array | None) -> Array | None:
    """Smaller floats as float64, in which the last bit is lost when the result is rounded to their type."""
    return array if array is None or array.dtype.kind != "f" else array.astype(np.float64)


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
        """The outputs as constants, if all inputs are; the same bytes on every CPU."""
        if any(tensor is not None and not tensor.is_constant for tensor in self.inputs):
            return None
        operands = [None if tensor is None else tensor.value for tensor in self.inputs]
        if self.op.depends_on_cpu:
            operands = [in_double(array) for array in operands]
        with np.errstate(all="ignore"):
            arrays = self.computed(operands)
        return tuple(
            Tensor.constant(tensor.name, array, tensor.quant)
            for tensor, array in zip(self.outputs, arrays, strict=True)
        )
