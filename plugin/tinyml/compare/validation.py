# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Translation validation: the optimised graph against the imported one, part by part.

Tensors that both graphs have, in the same layout or as NHWC, cut them into parts. A part is proved if it is
the same operator on the same operands, if it selects the same elements, if all values of its one or two int8
operands were enumerated, or if both sides are affine functions whose coefficients are so close that no input
tells their results apart by more than one step, with the same clamps. All others are tested with directed
inputs. The definitions of the operators in numpy are what
both sides mean; generated C is compared with them elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.compare.by_weights import apart_by_weights, same_in_order, selects_the_same
from tinyml.compare.directed import directed
from tinyml.compare.parts import Cuts, Slice, cuts_of, slice_of
from tinyml.compare.recurrent_steps import step_by_step
from tinyml.ir import Array, DType, Graph, Layer, Tensor
from tinyml.ir.interpreter import evaluate, interpret
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.shared.quant import NO_CLAMP, quant_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers

BYTES = (DType.INT8, DType.UINT8)
MOST_COEFFICIENTS = 1 << 22  # inputs times outputs of an affine part
LEAST_PAIRS = 64  # at once, of 65,536: else enumerating them takes too long
STEPS = 1  # by which integers may differ: a tie that one side rounds up
CLOSE = 1e-4  # floats, of the largest value

SAME = "the same operator on the same operands"
IN_ORDER = "the same operator on the same elements, after movements that are followed one by one"
SELECTED = "selects the same elements: Dequantize keeps their order, Quantize gives all 256 values back"
ENUMERATED = "all 256 values of the operand"
PAIRS = "all 65,536 pairs of values of the operands"
AFFINE = "affine: no input makes them differ by more than {:.3f} steps before rounding"
TESTED = "{} directed inputs"
RECURRENT = (
    "{} directed inputs, step by step from the same states: {:.2f} steps of int8 apart at most, limit {:.2f};"
    " whole sequences of a float runtime were up to {:.0f} apart"
)
REACHED = "what {} directed inputs of the model make of its operands"


@dataclass(frozen=True)
class Part:
    """What computes a tensor, in both graphs; ``fine``: nothing speaks against it."""

    tensor: str
    layers: tuple[str, ...]  # of the optimised graph
    proved: bool
    how: str
    fine: bool = True


def validate(imported: Graph, optimised: Graph) -> list[Part]:
    """Every part of the optimised graph, with how it was compared."""
    inputs = directed([imported.tensors[name] for name in imported.inputs])
    reached = interpret(imported, inputs)
    cuts = cuts_of(imported, optimised, inputs[-1], reached[-1])
    parts = []
    for node in optimised.nodes:
        for name in node.outputs:
            if name in cuts:
                mine = slice_of(optimised, name, set(cuts))
                theirs = slice_of(imported, cuts[name], set(cuts.values()))
                if {cuts[one] for one in mine.inputs} == {cuts[name]}:  # the same tensor in another form
                    theirs = Slice(imported, (), (cuts[name],), cuts[name])
                if {cuts[one] for one in mine.inputs} >= set(theirs.inputs):
                    parts.append(_compared(mine, theirs, cuts, reached))
    left = {n.name for n in optimised.nodes} - {layer for part in parts for layer in part.layers}
    if left or not {*optimised.outputs} <= {part.tensor for part in parts}:
        parts.append(
            Part("", tuple(sorted(left)), False, "nothing to compare with: layers are not in a part")
        )
    return parts


def _compared(mine: Slice, theirs: Slice, cuts: Cuts, reached: Sequence[Mapping[str, Array]]) -> Part:
    names = tuple(node.name for node in mine.nodes)
    if _is_same(mine, theirs, cuts):
        return Part(mine.output, names, True, SAME)
    if same_in_order(mine, theirs, cuts):
        return Part(mine.output, names, True, IN_ORDER)
    if selects_the_same(mine, theirs, cuts):
        return Part(mine.output, names, True, SELECTED)
    both = _both(mine, theirs, cuts)
    if _is_bytewise(mine) and _is_bytewise(theirs):
        tensor = mine.graph.tensors[mine.inputs[0]]
        low, high = tensor.dtype.limits
        fills = ({tensor.name: np.full(tensor.shape, v, tensor.dtype.numpy)} for v in range(low, high + 1))
        if all(both(values) <= STEPS for values in fills):
            return Part(mine.output, names, True, ENUMERATED)
    if _is_of_pairs(mine) and _is_of_pairs(theirs) and all(both(one) <= STEPS for one in _pairs(mine)):
        return Part(mine.output, names, True, PAIRS)
    apart = apart_by_weights(mine, theirs, cuts)
    apart = _affine(mine, theirs, cuts) if apart is None else apart
    if apart is not None and apart < 0.5:
        return Part(mine.output, names, True, AFFINE.format(max(1, math.ceil(1000 * apart)) / 1000))
    given = directed([mine.graph.tensors[name] for name in mine.inputs])
    try:
        fine = all(both(values) <= STEPS for values in given)
    except (ValueError, IndexError, OverflowError, ZeroDivisionError):  # indices, shapes, counts
        fine = False
    if fine:
        return Part(mine.output, names, False, TESTED.format(len(given)))
    pairs = [(one, {cuts[name]: cuts.to_theirs(name, array) for name, array in one.items()}) for one in given]
    drift = step_by_step(mine, theirs, pairs, STEPS)
    if drift is not None:
        how = RECURRENT.format(len(given), drift.largest, drift.limit, drift.whole)
        return Part(mine.output, names, False, how, drift.close)
    # Passes may rely on what a tensor cannot be, such as negative: then values that it has are what counts.
    seen = [{name: cuts.to_mine(name, run[cuts[name]]) for name in mine.inputs} for run in reached]
    fine = all(both(values) <= STEPS for values in seen)
    return Part(mine.output, names, False, REACHED.format(len(seen)), fine)


def _both(mine: Slice, theirs: Slice, cuts: Cuts) -> Callable[[Mapping[str, Array]], float]:
    """How far the two are apart for some inputs: steps of integers, or 2 for floats that are not close."""

    def apart(values: Mapping[str, Array]) -> float:
        first = mine.run(values)
        second = theirs.run({cuts[name]: cuts.to_theirs(name, array) for name, array in values.items()})
        second = cuts.to_mine(mine.output, second)
        if first.dtype.kind == "f":
            largest = max(1e-30, float(np.abs(second).max(initial=0.0)))
            return 0.0 if np.allclose(first, second, rtol=CLOSE, atol=CLOSE * largest) else 2.0
        return float(np.abs(first.astype(np.int64) - second.astype(np.int64)).max(initial=0))

    return apart


def _is_same(mine: Slice, theirs: Slice, cuts: Cuts) -> bool:
    if len(mine.nodes) != 1 or len(theirs.nodes) != 1 or mine.output in cuts.moved | cuts.shifted:
        return False
    (a,), (b,) = mine.layers, theirs.layers
    return (
        a.op == b.op
        and len(a.inputs) == len(b.inputs)
        and all(_is_same_operand(x, y, cuts) for x, y in zip(a.inputs, b.inputs, strict=True))
    )


def _is_same_operand(x: Tensor | None, y: Tensor | None, cuts: Cuts) -> bool:
    if x is None or y is None:
        return x is y
    if x.is_constant and y.is_constant:
        return (x.shape, x.dtype, x.quant) == (y.shape, y.dtype, y.quant) and np.array_equal(x.value, y.value)
    return cuts.get(x.name) == y.name == x.name and x.name not in cuts.shifted


def _is_bytewise(part: Slice) -> bool:
    """Every output element depends on the one byte at its place."""
    if len(part.inputs) != 1 or part.graph.tensors[part.inputs[0]].dtype not in BYTES:
        return False
    return all(layer.op.elementwise for layer in part.layers)


def _is_of_pairs(part: Slice) -> bool:
    """Every output element depends on the two bytes at its place, and not on the place."""
    shape = part.graph.tensors[part.output].shape
    operands = [part.graph.tensors[name] for name in part.inputs]
    if len(operands) != 2 or any(t.shape != shape or t.dtype not in BYTES for t in operands):
        return False
    if operands[0].elements < LEAST_PAIRS:
        return False
    used = [t for layer in part.layers for t in (*layer.inputs, *layer.outputs) if t is not None]
    alike = all(
        (t.quant is None or not t.quant.per_channel)
        and (t.elements == 1 if t.is_constant else t.shape == shape)
        for t in used
    )
    return alike and all(layer.op.elementwise for layer in part.layers)


def _pairs(part: Slice) -> Iterator[dict[str, Array]]:
    """All pairs of bytes, as many at once as the tensors have elements."""
    first, second = (part.graph.tensors[name] for name in part.inputs)
    (low, high), (low2, high2) = first.dtype.limits, second.dtype.limits
    left, right = np.meshgrid(np.arange(low, high + 1), np.arange(low2, high2 + 1))
    for start in range(0, left.size, first.elements):
        yield {
            tensor.name: np.resize(values.reshape(-1)[start : start + first.elements], tensor.shape).astype(
                tensor.dtype.numpy
            )
            for tensor, values in ((first, left), (second, right))
        }


def _affine(mine: Slice, theirs: Slice, cuts: Cuts) -> float | None:
    """By how many steps an integer layer and a float one can be apart before they round; None if unknown.

    Both are affine in the stored integers, so their values at the zero point and one step beside it, for each
    element, are all there is to know. Both are taken as real numbers; rounding and saturation follow.
    """
    if len(mine.inputs) != 1 or not mine.nodes or not theirs.nodes:
        return None
    last, ends = mine.nodes[-1], theirs.nodes[-1]
    layer = cast(Layer[Weighted], mine.graph.layer(last))
    x, y = mine.graph.tensors[mine.inputs[0]], mine.graph.tensors[mine.output]
    in_order = all(one.op.kind == "Reshape" for one in mine.layers[:-1])  # elements keep their order
    if not isinstance(layer.op, Weighted) or not isinstance(ends.op, Quantize) or not in_order:
        return None
    if (
        x.quant is None
        or y.quant is None
        or x.quant.per_channel
        or x.elements * y.elements > MOST_COEFFICIENTS
    ):
        return None
    linear = all(one.op.movement or one.op.kind in _LINEAR for one in theirs.layers[:-1])
    weighted = [one.op for one in theirs.layers if isinstance(one.op, Weighted)]
    if not linear or len(weighted) != 1 or {weighted[0].clamp, layer.op.clamp} != {NO_CLAMP}:
        return None
    return _largest_difference(mine, theirs, cuts, x, layer)


_LINEAR = ("Dequantize", "Conv", "DepthwiseConv", "Dense")


def _largest_difference(mine: Slice, theirs: Slice, cuts: Cuts, x: Tensor, layer: Layer[Weighted]) -> float:
    zero, step = quant_of(x).zero_point, quant_of(layer.output).scale
    bias = layer.input(2) if layer.has_input(2) else None
    multiplier, shift = (part.astype(np.float64) for part in channel_multipliers(layer))
    factors = multiplier * 2.0 ** (shift - 31)  # of the sums, per output channel

    low, high = x.dtype.limits
    far = max(high - zero, zero - low)
    exact = _sums(layer)

    def theirs_at(stored: Array) -> Array:
        values = {cuts[x.name]: cuts.to_theirs(x.name, stored)}
        return cuts.to_mine(mine.output, theirs.run(values, theirs.nodes[-1])).astype(np.float64) / step

    base = np.full(x.shape, zero, x.dtype.numpy)
    start = theirs_at(base)
    own = np.zeros(()) if bias is None else bias.value.reshape(-1).astype(np.float64) * factors
    worst = np.abs(start - own)
    beside = 1 if zero < high else -1
    for position in range(x.elements):
        moved = base.copy()
        moved.reshape(-1)[position] += beside
        slope = (theirs_at(moved) - start) * beside
        worst = worst + np.abs(slope - exact(position) * factors) * far
    return float(worst.max(initial=0.0))


def _sums(layer: Layer[Weighted]) -> Callable[[int], Array]:
    """The weights with which an element of the input enters the sums, as exact integers."""
    w = layer.input(1)
    plain = replace(layer.op, clamp=(-np.inf, np.inf))
    zero_w = np.asarray(quant_of(w).zero_points, np.float64)
    values = w.value.astype(np.float64)
    values = values - (zero_w if zero_w.size == 1 else _along(zero_w, values.ndim, layer))
    real_w = Tensor(w.name, w.shape, DType.FLOAT32, data=values.astype(np.float32))
    first = layer.input(0)
    real_x = Tensor(first.name, first.shape, DType.FLOAT32)
    real_y = Tensor(layer.output.name, layer.output.shape, DType.FLOAT32)
    real = replace(layer, op=plain, inputs=(real_x, real_w), outputs=(real_y,))

    def of(position: int) -> Array:
        one = np.zeros(first.elements, np.float32)
        one[position] = 1.0
        (found,) = evaluate(real, {first.name: one.reshape(first.shape)})
        return found.astype(np.float64)

    return of


def _along(zeros: Array, rank: int, layer: Layer[Weighted]) -> Array:
    shape = [1] * rank
    shape[layer.op.channel_axis] = -1
    return zeros.reshape(shape)
