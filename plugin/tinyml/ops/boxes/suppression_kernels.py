# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of BoxSuppression, and its reader: NON_MAX_SUPPRESSION_V4 and V5."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.cores.targets import Target
from tinyml.ir import Layer, Tensor
from tinyml.ops.boxes.nms import chosen_bytes
from tinyml.ops.boxes.suppression import OVERLAP, SCORE, BoxSuppression
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import MALFORMED, Builder, TfliteNode, tflite_op
from tinyml.ops.shared.operands import optional

ENTRY_BYTES = 8  # of struct queue_entry
SINCE_BYTES = 4


class SuppressionKernel(Kernel[BoxSuppression]):
    """A queue of candidates; each is compared with the boxes that are chosen already."""

    library = Library.PORTABLE
    scratch_alignment = 4
    soft: bool

    def _chosen_bytes(self, layer: Layer[BoxSuppression]) -> int:
        return chosen_bytes(min(layer.op.rows, layer.input(1).elements))

    def scratch_bytes(self, layer: Layer[BoxSuppression], target: Target) -> int:
        each = ENTRY_BYTES + SINCE_BYTES * self.soft
        return self._chosen_bytes(layer) + each * layer.input(1).elements

    def emit(self, layer: Layer[BoxSuppression], sheet: Sheet) -> None:
        op, boxes = layer.op, layer.input(1).elements
        sheet.include("<tinyml/boxes.h>")
        members: dict[str, object] = {".boxes": boxes, ".most": op.rows}
        if self.soft:
            members[".scale"] = sheet.number(float(op.scale))
        record = sheet.record("struct tinyml_suppression", "params", members)
        values = []
        for word, index, fixed in (("overlap", OVERLAP, op.overlap), ("score", SCORE, op.score)):
            arrives = optional(layer, index) is not None
            values.append(f".{word} = " + (f"{sheet.x(index)}[0]" if arrives else sheet.number(fixed)))
        sheet.line("const struct tinyml_suppression_limits limits = {" + ", ".join(values) + "};")
        outputs = ", ".join(sheet.y(i) for i in range(3))
        sheet.line(f"const struct tinyml_suppressed found = {{{outputs}}};")
        sheet.divide_scratch()
        sheet.buffer("chosen", "void", 0)
        sheet.buffer("queue", "void", self._chosen_bytes(layer))
        operands = [f"&{record}", "limits", sheet.x(0), sheet.x(1), "found", "chosen", "queue"]
        if self.soft:
            sheet.buffer("since", "int32_t", self._chosen_bytes(layer) + ENTRY_BYTES * boxes)
            operands.append("since")
        sheet.line()
        sheet.line(f"{self.name}({', '.join(operands)});")


def hard(layer: Layer[BoxSuppression]) -> bool:
    """Sigma is 0: a box is dropped or keeps its score."""
    return layer.op.sigma == 0


def soft(layer: Layer[BoxSuppression]) -> bool:
    """Sigma is positive: boxes that overlap lose part of their score."""
    return layer.op.sigma > 0


def few_comparisons(layer: Layer[BoxSuppression]) -> bool:
    """Boxes times rows are at most 268,435,456."""
    return layer.op.rows * layer.input(1).elements <= 1 << 28


class HardSuppression(SuppressionKernel):
    """Scores stay as they are."""

    name = "tinyml_suppression_f32"
    sources = ("boxes/suppression_f32.c",)
    constraints = (hard,)
    soft = False


class SoftSuppression(SuppressionKernel):
    """Each comparison with a chosen box lowers a score."""

    name = "tinyml_soft_suppression_f32"
    sources = ("boxes/soft_suppression_f32.c",)
    constraints = (soft, few_comparisons)
    soft = True


register_kernels(BoxSuppression, HardSuppression(), SoftSuppression())

MOST, PART, LEAST, SIGMA = 2, 3, 4, 5  # inputs in the file


def _fixed(node: TfliteNode, index: int, name: str) -> float:
    """An operand on which shapes or kernels depend."""
    tensor = node.input(index)
    if tensor.data is None or tensor.elements != 1:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r}: {name} arrives at run time",
            f"convert the model with one constant number as {name}",
        )
    return float(tensor.data.reshape(-1)[0])


def _single(tensor: Tensor) -> float:
    """The value of a threshold that the compiler knows; any number for one that arrives."""
    return 0.0 if tensor.data is None or tensor.elements != 1 else float(tensor.data.reshape(-1)[0])


@tflite_op("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    scored = node.op_type == "NON_MAX_SUPPRESSION_V5"
    most = int(_fixed(node, MOST, "max_output_size"))
    sigma = _fixed(node, SIGMA, "soft_nms_sigma") if scored else 0.0
    part, least = node.input(PART), node.input(LEAST)
    for name, value, fits in (
        ("max_output_size", most, most >= 1),
        ("soft_nms_sigma", sigma, 0 <= sigma < float("inf")),
        ("iou_threshold", _single(part), 0 <= _single(part) <= 1),
        ("score_threshold", _single(least), _single(least) == _single(least)),
    ):
        if not fits:
            raise ModelError(f"{node.op_type} operator {node.name!r}: {name} is {value}", MALFORMED)
    op = BoxSuppression(build.bound(most), _single(part), _single(least), sigma)
    limits = [tensor if tensor.data is None else None for tensor in (part, least)]
    indices, scores, count = build.add(op, [node.input(0), node.input(1), *limits])
    return [indices, scores, count] if scored else [indices, count]
