# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts whose layers follow each other, and where their elements go: movements are followed one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.compare.parts import Cuts, Slice
from tinyml.ir import Array, DType, Layer, Tensor
from tinyml.ir.interpreter import evaluate
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.shared.quant import dequantize


@dataclass(frozen=True)
class Chain:
    """Layers one after the other, each of which reads what the one before it computes, and constants."""

    layers: tuple[Layer, ...]
    constants: dict[str, Array]

    def moved(self, index: Array, first: int, end: int) -> Array:
        """Where elements are after some layers, of which only movements change that."""
        for layer in self.layers[first:end]:
            if layer.op.movement:
                # The type makes no difference to a movement; places need more than a byte.
                inputs = (_of_places(layer.input(0)), *layer.inputs[1:])
                plain = replace(layer, inputs=inputs, outputs=tuple(map(_of_places, layer.outputs)))
                (index,) = evaluate(plain, {**self.constants, layer.input(0).name: index})
        return index

    def constant(self, tensor: Tensor) -> Array | None:
        return tensor.value if tensor.is_constant else self.constants.get(tensor.name)


@dataclass(frozen=True)
class At:
    """A layer of a chain."""

    chain: Chain
    place: int


def _of_places(tensor: Tensor) -> Tensor:
    return replace(tensor, dtype=DType.INT64, quant=None)


def chain_of(part: Slice) -> Chain | None:
    """The layers between the one input and the output; None if there are branches."""
    if len(part.inputs) != 1:
        return None
    data, constants = {part.inputs[0]}, dict[str, Array]()
    layers: list[Layer] = []
    for layer in part.layers:
        varying = [t is not None and t.name in data for t in layer.inputs]
        if not any(varying):
            values = {t.name: constants[t.name] for t in layer.inputs if t is not None and not t.is_constant}
            constants.update(zip([t.name for t in layer.outputs], evaluate(layer, values), strict=True))
            continue
        if sum(varying) != 1 or not varying[0] or (layers and layer.input(0) != layers[-1].output):
            return None
        data.update(t.name for t in layer.outputs)
        layers.append(layer)
    if not layers or layers[-1].output.name != part.output:
        return None
    return Chain(_without_detours(layers), constants)


def _without_detours(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Without Quantize and Dequantize that give back what another Dequantize has made of stored integers."""
    found: list[Layer] = []
    skipped = False
    for layer, after in zip(layers, [*layers[1:], None], strict=True):
        if skipped:
            skipped = False
            continue
        starts = (
            bool(found) and isinstance(found[0].op, Dequantize) and all(one.op.movement for one in found[1:])
        )
        if (
            starts
            and after is not None
            and isinstance(layer.op, Quantize)
            and isinstance(after.op, Dequantize)
        ):
            source, back = found[0].input(0), layer.output
            if (source.dtype, source.quant) == (back.dtype, back.quant) and gives_back(source, layer):
                skipped = True
                continue
        found.append(layer)
    return tuple(found)


def gives_back(tensor: Tensor, quantize: Layer) -> bool:
    """Whether each integer of a tensor is itself after Dequantize and Quantize; all are enumerated."""
    if tensor.quant is None or tensor.quant.per_channel or tensor.dtype not in (DType.INT8, DType.UINT8):
        return False
    low, high = tensor.dtype.limits
    stored = np.arange(low, high + 1)
    real = dequantize(stored.astype(tensor.dtype.numpy), tensor.quant)
    (again,) = quantize.op.evaluate(quantize, [real])
    return np.array_equal(again, stored) and bool(np.all(np.diff(real) > 0))


def seen_by(mine: Slice, theirs: Slice, cuts: Cuts, a: At, b: At) -> tuple[Array, Array]:
    """Which elements of the input the layers at two places see, counted in the imported graph."""
    x = theirs.graph.tensors[theirs.inputs[0]]
    index = np.arange(x.elements).reshape(x.shape)
    own = a.chain.moved(cuts.to_mine(mine.inputs[0], index), 0, a.place)
    return own, b.chain.moved(index, 0, b.place)


def ends_in_order(mine: Slice, cuts: Cuts, a: At, b: At) -> bool:
    """Whether the results of the layers at two places end at the same places."""
    outputs = [at.chain.layers[at.place].output for at in (a, b)]
    if outputs[0].shape != outputs[1].shape:
        return False
    ends = [
        at.chain.moved(np.arange(y.elements).reshape(y.shape), at.place + 1, len(at.chain.layers))
        for at, y in zip((a, b), outputs, strict=True)
    ]
    return np.array_equal(ends[0], cuts.to_mine(mine.output, ends[1]))


def keeps_order(mine: Slice, theirs: Slice, cuts: Cuts, a: At, b: At) -> bool:
    """Whether the layers at two places see the same elements, and their results end at the same places."""
    return np.array_equal(*seen_by(mine, theirs, cuts, a, b)) and ends_in_order(mine, cuts, a, b)


def ends_alike(mine: Slice, theirs: Slice, cuts: Cuts, a: Chain, b: Chain) -> bool:
    """Whether all movements together bring each element to the same place."""
    x = theirs.graph.tensors[theirs.inputs[0]]
    index = np.arange(x.elements).reshape(x.shape)
    own = a.moved(cuts.to_mine(mine.inputs[0], index), 0, len(a.layers))
    return np.array_equal(own, cuts.to_mine(mine.output, b.moved(index, 0, len(b.layers))))
