# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression: of boxes that overlap, the one with the best score, class by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.boxes.overlap import best_first, chosen
from tinyml.ops.counted.bound import rows_within
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.shared.operands import integers, numbers_from, of_type, optional, present
from tinyml.ops.shared.quant import dequantize

BOX_BYTES = 20  # of struct overlap_box
KEY_ALIGNMENT = 8
PER_CLASS, OVERLAP, SCORE, BOXES = 2, 3, 4, 5  # inputs that may arrive at run time


def boxes_and_scores(layer: Layer) -> bool:
    """Boxes have the shape (batch, boxes, 4), scores (batch, classes, boxes)."""
    boxes, scores = layer.input(0).shape, layer.input(1).shape
    fit = len(boxes) == len(scores) == 3 and boxes[2] == 4
    return fit and boxes[0] == scores[0] and boxes[1] == scores[2]


def is_byte(tensor: Tensor) -> bool:
    """Whether a tensor has bytes with one scale, which kernels read as they are."""
    stored = tensor.dtype in (DType.INT8, DType.UINT8) and tensor.quant is not None
    return stored and tensor.quant is not None and not tensor.quant.per_channel


def plain_or_bytes(*tensors: Tensor) -> bool:
    """Whether all tensors are float32, or all are bytes."""
    if all(tensor.quant is None for tensor in tensors):
        return all(tensor.dtype is DType.FLOAT32 for tensor in tensors)
    return all(is_byte(tensor) for tensor in tensors)


def floats_or_bytes(layer: Layer) -> bool:
    """Boxes and scores are float32, or bytes with a scale each."""
    return plain_or_bytes(layer.input(0), layer.input(1))


def single_numbers(layer: Layer) -> bool:
    """The number of boxes and the thresholds are single numbers."""
    return all(
        not layer.has_input(i) or layer.input(i).elements == 1 for i in (PER_CLASS, OVERLAP, SCORE, BOXES)
    )


@dataclass(frozen=True)
class NonMaxSuppression(Op):
    """Inputs: boxes (b, n, 4), scores (b, c, n); then, where the model does not fix them, boxes per class,
    overlap and score; and how many of the boxes there are, if not all.

    Outputs: batch, class and box of each that is chosen (rows, 3), zeros after the last; their number (1).
    """

    operands = (
        present(2),
        boxes_and_scores,
        floats_or_bytes,
        integers(PER_CLASS),
        of_type(OVERLAP, DType.FLOAT32),
        of_type(SCORE, DType.FLOAT32),
        integers(BOXES),
        single_numbers,
        numbers_from(0, "rows", "per_class"),
    )
    folds = False  # the reader knows how many results constants give
    clears = True
    rows: int = 0
    per_class: int = 0
    overlap: float = 0.0
    score: float | None = None  # None: all scores count
    center: bool = False

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[1]) if index in (PER_CLASS, BOXES) else None

    def reads_stored(self, inputs: Sequence[Tensor | None]) -> bool:
        return floats_or_bytes(Layer("", self, tuple(inputs), ()))

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((self.rows, 3), DType.INT64), TensorType((1,), DType.INT64))

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        found = self.choose(layer, inputs)
        rows = rows_within(found, self.rows, layer)
        return rows, np.array([len(found)], np.int64)

    def choose(self, layer: Layer, inputs: Sequence[Array | None]) -> Array:
        """Batch, class and box of all that are chosen."""
        boxes, scores = (_real(layer.input(i), given(inputs, i)) for i in (0, 1))
        limit, overlap, score, known = (_value(inputs, i) for i in (PER_CLASS, OVERLAP, SCORE, BOXES))
        count = boxes.shape[1] if known is None else min(max(int(known), 0), boxes.shape[1])
        per_class = self.per_class if limit is None else int(limit)
        least = self.score if score is None else float(score)
        part = self.overlap if overlap is None else float(overlap)
        found: list[tuple[int, int, int]] = []
        for b, c in np.ndindex(scores.shape[:2]):
            own = scores[b, c, :count]
            counts = own == own if least is None else own > np.float32(least)
            order = best_first(own, [int(i) for i in np.flatnonzero(counts)])
            corners = self._corners(boxes[b])
            found += [(b, c, i) for i in chosen(corners, order, per_class, part)]
        return np.array(found, np.int64).reshape(-1, 3)

    def _corners(self, boxes: Array) -> Array:
        if self.center:
            x, y, w, h = boxes.T
            w, h = w / np.float32(2), h / np.float32(2)
            return np.stack([y - h, x - w, y + h, x + w], axis=1)
        low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
        return np.concatenate([low, high], axis=1)


def _real(tensor: Tensor, array: Array) -> Array:
    return array if tensor.quant is None else dequantize(array, tensor.quant)


def _value(inputs: Sequence[Array | None], index: int) -> Array | None:
    array = inputs[index] if index < len(inputs) else None
    return None if array is None else np.asarray(array).reshape(-1)[0]


def chosen_bytes(most: int) -> int:
    """Memory for boxes that are chosen, behind which keys follow."""
    return -(-BOX_BYTES * max(most, 1) // KEY_ALIGNMENT) * KEY_ALIGNMENT


class NmsKernel(Kernel[NonMaxSuppression]):
    """A heap of candidates; each is compared with the boxes that are chosen already."""

    library = Library.PORTABLE
    scratch_alignment = KEY_ALIGNMENT
    suffix: str
    key_bytes: int

    def _chosen_bytes(self, layer: Layer[NonMaxSuppression]) -> int:
        op, boxes = layer.op, layer.input(0).shape[1]
        most = boxes if layer.has_input(PER_CLASS) else min(op.per_class, boxes)
        return chosen_bytes(min(most, op.rows + 1))

    def scratch_bytes(self, layer: Layer[NonMaxSuppression], target: Target) -> int:
        return self._chosen_bytes(layer) + self.key_bytes * max(layer.input(0).shape[1], 1)

    def emit(self, layer: Layer[NonMaxSuppression], sheet: Sheet) -> None:
        op, (batches, count, _) = layer.op, layer.input(0).shape
        sheet.include("<tinyml/boxes.h>")
        sheet.may_fail = True
        scored = op.score is not None or layer.has_input(SCORE)
        members: dict[str, object] = {
            ".batches": batches,
            ".classes": layer.input(1).shape[1],
            ".boxes": count,
            ".most": op.rows,
            ".center": str(op.center).lower(),
            ".scored": str(scored).lower(),
        }
        for word, index in (("box", 0), ("score", 1)):
            quant = layer.input(index).quant
            if quant is not None:
                members[f".{word}_scale"] = sheet.number(quant.scale)
                members[f".{word}_zero"] = quant.zero_point
        if layer.has_input(PER_CLASS):
            members[".per_class"] = count
        record = sheet.record("struct tinyml_nms", "params", members)
        values: list[str] = []
        for index, fixed in ((PER_CLASS, min(op.per_class, count)), (BOXES, count)):
            known = not layer.has_input(index)
            word = "per_class" if index == PER_CLASS else "boxes"
            number = str(fixed) if known else str(sheet.limited(f"{sheet.x(index)}[0]", 0, count))
            values.append(f".{word} = {number}")
        for index, real in ((OVERLAP, op.overlap), (SCORE, op.score or 0.0)):
            word = "overlap" if index == OVERLAP else "score"
            given_ = optional(layer, index)
            values.append(f".{word} = " + (sheet.number(real) if given_ is None else f"{sheet.x(index)}[0]"))
        sheet.divide_scratch()
        sheet.buffer("chosen", "void", 0)
        sheet.buffer("heap", "void", self._chosen_bytes(layer))
        sheet.line("const struct tinyml_nms_limits limits = {" + ", ".join(values) + "};")
        sheet.line()
        sheet.line(
            f"return {self.name}(&{record}, limits, {sheet.x(0)}, {sheet.x(1)}, {sheet.y(0)}, "
            f"{sheet.y(1)}, chosen, heap);"
        )


def floats(layer: Layer) -> bool:
    """Boxes and scores are float32."""
    return layer.input(0).quant is None


def stored_bytes(layer: Layer) -> bool:
    """Boxes and scores are int8."""
    return layer.input(0).dtype is layer.input(1).dtype is DType.INT8


class NmsFloat(NmsKernel):
    """On floats."""

    name = "tinyml_nms_f32"
    sources = ("boxes/nms_f32.c",)
    constraints = (floats,)
    key_bytes = 8


def countable(layer: Layer) -> bool:
    """There are at most 16,777,216 boxes."""
    return layer.input(0).shape[1] <= 1 << 24


class NmsBytes(NmsKernel):
    """On bytes: scores are compared as they are, coordinates become real numbers when they are needed."""

    name = "tinyml_nms_s8"
    sources = ("boxes/nms_s8.c",)
    constraints = (stored_bytes, countable)
    key_bytes = 4


register_kernels(NonMaxSuppression, NmsBytes(), NmsFloat())
