# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of DetectionPostProcess, and its reader: TFLite_Detection_PostProcess, a custom operator."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ModelError
from tinyml.cores.targets import Target
from tinyml.ir import Layer, Tensor
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import KEY_ALIGNMENT, chosen_bytes, countable, floats, is_byte, stored_bytes
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import MALFORMED, Builder, TfliteNode, tflite_custom_op
from tinyml.ops.shared.flexbuffer_options import flag, option, present, real
from tinyml.ops.shared.real import to_real


class DetectionKernel(Kernel[DetectionPostProcess]):
    """A heap of candidates; boxes are decoded one by one, and compared with those that are chosen already."""

    library = Library.PORTABLE
    scratch_alignment = KEY_ALIGNMENT
    key_bytes: int

    def functions(self, layer: Layer[DetectionPostProcess]) -> tuple[str, ...]:
        return (self._function(layer),)

    def _function(self, layer: Layer[DetectionPostProcess]) -> str:
        return self.name.replace("detection", "detection_classes") if layer.op.per_class else self.name

    def _chosen_bytes(self, layer: Layer[DetectionPostProcess]) -> int:
        op = layer.op
        return chosen_bytes(min(op.per_class or op.most, layer.input(0).shape[1]))

    def _heap_bytes(self, layer: Layer[DetectionPostProcess]) -> int:
        return self.key_bytes * max(layer.input(0).shape[1], 1)

    def _order_bytes(self, layer: Layer[DetectionPostProcess]) -> int:
        return 0 if layer.op.per_class else 4 * min(layer.op.kinds, layer.op.classes)

    def scratch_bytes(self, layer: Layer[DetectionPostProcess], target: Target) -> int:
        return self._chosen_bytes(layer) + self._heap_bytes(layer) + self._order_bytes(layer)

    def emit(self, layer: Layer[DetectionPostProcess], sheet: Sheet) -> None:
        op, boxes, scores = layer.op, layer.input(0), layer.input(1)
        sheet.include("<tinyml/boxes.h>")
        members: dict[str, object] = {
            ".boxes": boxes.shape[1],
            ".box_stride": boxes.shape[2],
            ".score_stride": scores.shape[2],
            ".background": scores.shape[2] - op.classes,
            ".classes": op.classes,
            ".most": op.most,
            ".per_class": op.per_class,
            ".kinds": op.kinds,
            ".scales": "{" + ", ".join(sheet.number(scale) for scale in op.scales) + "}",
            ".score": sheet.number(op.score),
            ".overlap": sheet.number(op.overlap),
        }
        for word, index in (("box", 0), ("score", 1), ("anchor", 2)):
            quant = layer.input(index).quant
            if quant is not None:
                members[f".{word}_scale"] = sheet.number(quant.scale)
                members[f".{word}_zero"] = quant.zero_point
        record = sheet.record("struct tinyml_detection", "params", members)
        outputs = ", ".join(sheet.y(i) for i in range(4))
        sheet.line(f"const struct tinyml_detected found = {{{outputs}}};")
        sheet.divide_scratch()
        sheet.buffer("chosen", "void", 0)
        sheet.buffer("heap", "void", self._chosen_bytes(layer))
        operands = [sheet.x(0), sheet.x(1), sheet.x(2), "found", "chosen", "heap"]
        if self._order_bytes(layer):
            sheet.buffer("order", "int32_t", self._chosen_bytes(layer) + self._heap_bytes(layer))
            operands.append("order")
        sheet.line()
        sheet.line(f"{self._function(layer)}(&{record}, {', '.join(operands)});")


class DetectionFloat(DetectionKernel):
    """On floats."""

    name = "tinyml_detection_f32"
    sources = ("boxes/detection_f32.c",)
    constraints = (floats,)
    key_bytes = 8


class DetectionBytes(DetectionKernel):
    """On bytes: scores are compared as they are, boxes become real numbers when they are needed."""

    name = "tinyml_detection_s8"
    sources = ("boxes/detection_s8.c",)
    constraints = (stored_bytes, countable)
    key_bytes = 4


register_kernels(DetectionPostProcess, DetectionBytes(), DetectionFloat())

DEFAULT_PER_CLASS = 100


@tflite_custom_op("TFLite_Detection_PostProcess")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    regular = flag(node, "use_regular_nms")
    per_class = DEFAULT_PER_CLASS
    if present(node, "detections_per_class"):
        per_class = option(node, "detections_per_class", low=1)
    overlap = real(node, "nms_iou_threshold")
    if not 0 < overlap <= 1:
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: nms_iou_threshold is {overlap}; allowed: above 0, to 1",
            MALFORMED,
        )
    operands: list[Tensor | None] = [node.input(i) for i in range(3)]
    if not all(t is not None and is_byte(t) for t in operands):
        operands = [to_real(build, t) for t in operands]
    most = option(node, "max_detections", low=1)
    op = DetectionPostProcess(
        option(node, "num_classes", low=1),
        build.bound(most),
        option(node, "max_classes_per_detection", low=1),
        min(per_class, most) if regular else 0,
        real(node, "nms_score_threshold"),
        overlap,
        tuple(real(node, f"{name}_scale") for name in "yxhw"),
    )
    return build.add(op, operands)
