# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What exporters write between the product of queries and keys and that of weights and values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Node, Quant, Shape, Tensor
from tinyml.ops.attention.heads import Rows
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.ops.softmax.exp_table import SoftmaxTable
from tinyml.ops.softmax.softmax import Softmax
from tinyml.ops.transpose import Transpose
from tinyml.passes._attention_masks import Mask, Scores, masked_scores, rows_that_meet, span_of
from tinyml.passes._attention_shown import shown_keys
from tinyml.passes._attention_sums import apart, is_wide
from tinyml.passes.editor import Editor

BYTES = np.arange(-128, 128).astype(np.int8)


@dataclass(frozen=True)
class Path:
    """From the product of queries and keys to the weights."""

    product: Node
    between: tuple[Node, ...]  # in the order of the computation
    softmax: Node
    weights: str  # what the softmax gives, as integers if it is quantised
    scores: str  # the product, with a row for each query
    empty: str = ""  # the mask, if queries that it leaves no key have weights of 0
    guarded: bool = False  # weights that are not numbers are 0: those of queries that see no key
    swapped: bool = False  # the product is that of keys by queries, transposed afterwards, as Keras does


def path_to(edit: Editor, name: str) -> Path | None:
    """The path to the weights ``name``, if nothing else reads what is on it."""
    softmax = _alone(edit, name)
    empty: str | None = ""
    guarded = False
    weights = name
    if softmax is not None and isinstance(softmax.op, Quantize):  # of a softmax on real numbers
        name = softmax.inputs[0]
        softmax = _alone(edit, name)
    if softmax is not None and isinstance(softmax.op, Where):
        guarded = _guards(edit, softmax)
        empty = "" if guarded else _cleared(edit, softmax)
        name = softmax.inputs[2]
        softmax = edit.producer(name) if guarded else _alone(edit, name)
    if empty is None or softmax is None or not isinstance(softmax.op, Softmax | SoftmaxTable):
        return None
    rank = len(edit.tensors[softmax.outputs[0]].shape)
    if softmax.op.axis % rank != rank - 1:
        return None
    between: list[Node] = []
    node = _alone(edit, softmax.inputs[0])
    while node is not None and not isinstance(node.op, MatMul):
        if _turns(node):
            product = _alone(edit, node.inputs[0])
            if product is None or not isinstance(product.op, MatMul):
                return None
            return Path(
                product, tuple(between), softmax, weights, node.outputs[0], empty, guarded, swapped=True
            )
        between.insert(0, node)
        following = _scores_of(edit, node)
        node = _alone(edit, following) if following else None
    if node is None:
        return None
    return Path(node, tuple(between), softmax, weights, node.outputs[0], empty, guarded)


def _turns(node: Node) -> bool:
    """Whether a node transposes matrices."""
    if not isinstance(node.op, Transpose):
        return False
    last = len(node.op.perm) - 1
    return node.op.perm == (*range(last - 1), last, last - 1)


def _guards(edit: Editor, node: Node) -> bool:
    """PyTorch's where(isnan(weights), 0, weights): the softmax of a row of -inf is not a number.

    Neither is that of scores that are no numbers themselves. These become zeros here, and stay what they are
    in attention.
    """
    condition, zero, weights = node.inputs
    test = edit.producer(condition)
    if test is None or not isinstance(test.op, Unary) or test.op.function != "is_nan":
        return False
    if test.inputs != (weights,) or edit.only_reader(condition) is not node or _number(edit, zero) != 0:
        return False
    readers = edit.readers(weights)
    return not edit.is_kept(weights) and len(readers) == 2 and any(reader is test for reader in readers)


def _alone(edit: Editor, name: str) -> Node | None:
    """The producer of a tensor that has one reader, past reshapes that keep the last two axes."""
    node = edit.producer(name)
    while node is not None and edit.only_reader(name) is not None and isinstance(node.op, Reshape):
        if edit.tensors[node.inputs[0]].shape[-2:] != edit.tensors[name].shape[-2:]:
            return None
        name = node.inputs[0]
        node = edit.producer(name)
    return node if node is not None and edit.only_reader(name) is not None else None


def _cleared(edit: Editor, node: Node) -> str | None:
    """The mask whose rows of -inf have weights of 0; empty if no row has; None if it is something else."""
    condition, zero, weights = (edit.tensors[name] for name in node.inputs)
    if _number(edit, zero.name) != 0 or weights.shape != edit.tensors[node.outputs[0]].shape:
        return None
    if condition.data is not None:
        return None if condition.data.any() else ""
    equal = edit.producer(condition.name)
    if equal is None or not isinstance(equal.op, Binary) or equal.op.function != "equal":
        return None
    largest = edit.producer(equal.inputs[0])
    if _number(edit, equal.inputs[1]) != -math.inf or largest is None:
        return None
    if not isinstance(largest.op, Reduce) or largest.op.function != "max":
        return None
    mask = edit.tensors[largest.inputs[0]]
    last = len(mask.shape) - 1
    kept = edit.tensors[largest.outputs[0]].shape == (*mask.shape[:-1], 1)
    return mask.name if largest.op.axes == (last,) and kept else None


def _scores_of(edit: Editor, node: Node) -> str | None:
    """The operand that has the scores: the one computed, and as large as the result."""
    if len(node.outputs) != 1 or not (isinstance(node.op, Where) or node.op.elementwise):
        return None
    elements = edit.tensors[node.outputs[0]].elements
    found = [n for n in node.inputs if n and edit.tensors[n].elements == elements and _leads(edit, n)]
    return found[0] if len(found) == 1 else None


def _leads(edit: Editor, name: str) -> bool:
    """Whether a product is before this tensor, with element-wise operators between them."""
    elements = edit.tensors[name].elements
    waiting = [name]
    while waiting:  # masks may have as many elements as the scores
        node = _alone(edit, waiting.pop())
        if node is None:
            continue
        if isinstance(node.op, MatMul):
            return True
        if node.op.elementwise or isinstance(node.op, Where) or _turns(node):
            before = [n for n in node.inputs if n and not edit.tensors[n].is_constant]
            waiting += [n for n in before if edit.tensors[n].elements == elements]
    return False


# --- bytes ---------------------------------------------------------------------------------------


def table_of(edit: Editor, between: Sequence[Node]) -> tuple[tuple[int, ...], Quant] | None:
    """What functions of bytes make of each byte, and the quantisation of the result."""
    values: Array = BYTES
    quant: Quant | None = None
    for node in between:
        layer = edit.layer(node)
        if layer.output.dtype is not DType.INT8 or layer.output.quant is None:
            return None
        computed = [t for t in layer.inputs if t is not None and not t.is_constant]
        if len(computed) != 1 or any(
            t is not None and t.is_constant and t.elements != 1 for t in layer.inputs
        ):
            return None
        if computed[0].dtype is not DType.INT8 or not node.op.elementwise:
            return None
        line = [None if t is None else t if t.is_constant else _line(t) for t in layer.inputs]
        arrays = [None if t is None else t.data if t.is_constant else values for t in layer.inputs]
        part = Layer("", node.op, tuple(line), (_line(layer.output),))
        values = part.computed(arrays)[0]
        quant = layer.output.quant
    return None if quant is None else (tuple(int(v) for v in values), quant)


@dataclass(frozen=True)
class Sums:
    """What is added to the bytes, in these rows."""

    bias: str
    rows: Rows
    once: bool


def bias_of(edit: Editor, between: Sequence[Node], path: Path) -> Sums | None:
    """The bias that the last function of the bytes adds; None if that is any other function."""
    node = between[-1] if between else None
    if node is None or not isinstance(node.op, Binary) or node.op.function != "add":
        return None
    scores = between[-2].outputs[0] if len(between) > 1 else path.scores
    others = [name for name in node.inputs if not _same(edit, name, scores)]
    shape = edit.tensors[node.outputs[0]].shape
    alike = math.prod(shape) == edit.tensors[path.scores].elements
    if len(others) != 1 or not alike or edit.tensors[others[0]].elements == 1 or node.op.clamp != NO_CLAMP:
        return None
    rows = rows_that_meet(edit, Mask(others[0], shape, False))
    return None if rows is None else Sums(others[0], rows, node.op.round_once)


def in_real_numbers(edit: Editor, path: Path) -> tuple[tuple[Node, ...], Scores] | None:
    """Of bytes whose masks and softmax are computed in real numbers: what happens to the bytes, and the rest.

    Quantisers leave masks as they are, since no scale has room for what hides a score.
    """
    for number, node in enumerate(path.between):
        if isinstance(node.op, Dequantize):
            rest = replace(path, between=path.between[number + 1 :], scores=node.outputs[0])
            quant = edit.tensors[node.inputs[0]].quant
            if quant is None or quant.per_channel:
                return None
            low, high = ((end - quant.zero_point) * quant.scale for end in (-128, 127))
            found = scores_of(edit, rest, (low, high))
            plain = found is not None and not found.softcap and found.scale > 0
            return (path.between[:number], found) if found is not None and plain else None
    return None


def _line(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(256,))


# --- floats --------------------------------------------------------------------------------------


def scores_of(edit: Editor, path: Path, numbers: tuple[float, float] | None = None) -> Scores | None:
    """The scale, the cap and the mask; None if there is anything else, or another order.

    ``numbers`` are the smallest and the largest of the scores, if scores and weights are bytes.
    """
    found = Scores()
    masks: list[Mask] = []
    capped = False  # tanh has been seen, its factor not yet
    name = path.scores
    elements = edit.tensors[name].elements
    for node in path.between:
        scores = edit.tensors[
            node.outputs[0]
        ].shape  # a mask is broadcast to these axes, not to the product's
        quantized = any(t is not None and t.quant is not None for t in edit.layer(node).inputs)
        if quantized or math.prod(scores) != elements:
            return None
        op = node.op
        others = [n for n in node.inputs if n and not _same(edit, n, name)]
        number = _number(edit, others[0]) if len(others) == 1 else None
        if isinstance(op, Binary) and op.clamp != NO_CLAMP:
            return None
        if isinstance(op, Binary) and op.function in ("mul", "div") and number and not masks:
            if op.function == "div" and not _same(edit, node.inputs[0], name):
                return None
            factor = number if op.function == "mul" else 1 / number
            if found.softcap:
                return None
            if capped:
                found, capped = replace(found, scale=found.scale * factor, softcap=factor), False
            else:
                found = replace(found, scale=found.scale * factor)
        elif isinstance(op, Unary) and op.function == "tanh" and not (masks or capped or found.softcap):
            capped = True
        elif isinstance(op, Binary) and op.function == "add" and len(others) == 1 and not capped:
            masks.append(Mask(others[0], scores, False))
        elif isinstance(op, Where) and not capped:
            mask = _hidden(edit, node, name, scores)
            if mask is None:
                return None
            masks.append(mask)
        else:
            return None
        name = node.outputs[0]
    usable = math.isfinite(found.scale) and math.isfinite(found.softcap) and found.softcap >= 0
    if not usable or capped or not isinstance(path.softmax.op, Softmax | SoftmaxTable):
        return None
    span = span_of(found.scale, found.softcap, path.softmax.op.beta, numbers)
    masked = masked_scores(edit, found, masks, span)
    if numbers is None:
        other = bool(masks) and (masked is None or is_wide(edit, masked))
        return (apart(edit, found, masks, span) if other else None) or masked
    if masked is None or (masked.mask and not edit.tensors[masked.mask].is_constant):
        shown = shown_keys(edit, masks, span)
        if shown is not None:
            return replace(found, masked_by=masks[-1].name, span=span, past=shown.past, shown=shown)
    return masked


def _same(edit: Editor, name: str, scores: str) -> bool:
    """Whether a tensor is the scores, perhaps in another shape."""
    while name != scores:
        node = edit.producer(name)
        if node is None or not isinstance(node.op, Reshape):
            return False
        name = node.inputs[0]
    return True


def _number(edit: Editor, name: str) -> float | None:
    data = edit.tensors[name].data
    return float(data.reshape(-1)[0]) if data is not None and data.size == 1 else None


def _hidden(edit: Editor, node: Node, name: str, scores: Shape) -> Mask | None:
    """A condition that keeps scores or hides them."""
    condition, kept, replaced = node.inputs
    flipped = _number(edit, kept) is not None
    if flipped:
        kept, replaced = replaced, kept
    low = _number(edit, replaced)
    if not _same(edit, kept, name) or low is None or math.isnan(low):
        return None
    return Mask(condition, scores, True, low, flipped)
