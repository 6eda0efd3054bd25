# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.quantize``: a float model to int8."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tinyml.api.choices import Interface, Leaves, Method, Target, Weights
from tinyml.api.data import DataLike, data_file, example_of, given
from tinyml.api.pictures import decibel_bars
from tinyml.api.printed_tables import table
from tinyml.api.sources import Model, ModelLike, as_model, paths
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress
from tinyml.ir import Shape
from tinyml.pipeline import quantize_model, read_model, with_outputs
from tinyml.quantize.report import Report
from tinyml.settings.quantize_request import NO_DATA, Request, Scaling, parse_goal


@dataclass(frozen=True, repr=False)
class QuantizedModel(Model):
    """An int8 model as an ONNX file in memory, and what it lost."""

    report: Report = field(kw_only=True)  # the loss of accuracy, layer by layer

    def __repr__(self) -> str:
        return f"<QuantizedModel {self.name}: {self.report.headline()}>"

    def _repr_html_(self) -> str:
        layers = [
            (
                layer.name,
                layer.op_type,
                layer.type_text,
                _decibels(layer.decibels),
                _decibels(layer.lost_here),
                "" if layer.share is None else f"{100 * layer.share:.0f} %",
                layer.why,
            )
            for layer in self.report.computing()
        ]
        notes = [("warning", note) for note in self.report.advice()]
        known = [
            (layer.name, layer.decibels)
            for layer in self.report.computing()
            if layer.decibels is not None and math.isfinite(layer.decibels)
        ]
        picture = decibel_bars(known)
        return (
            table([("result", self.report.headline()), *notes])
            + picture
            + table(layers, ("layer", "operator", "type", "SNR", "lost here", "share of loss", "why float"))
        )


def _decibels(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} dB"


def quantize(
    model: ModelLike,
    calibration: DataLike | None = None,
    *,
    example: Any = None,
    labels: DataLike | None = None,
    method: Method = "auto",
    io: Interface = "float",
    keep_float: Sequence[str] = (),
    int16: Sequence[str] = (),
    auto: str | float | None = None,
    core: Target = "cortex-m4",
    range: tuple[float, float] | None = None,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    samples: int = Request.samples,
    leaves: Leaves = "int16",
    weights: Weights = "int8",
    max_loss: str | float | None = None,
    test: DataLike | None = None,
    shapes: Mapping[str, Shape] | None = None,
    bounds: Mapping[str, int] | None = None,
    operators: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> QuantizedModel:
    """Turn a float model into an int8 model, calibrated on real inputs.

    The settings are those of `tinyml quantize` (docs/quantize.md).

    :param model: the float model: a file, bytes, or a model of a training framework
    :param calibration: real inputs, some hundred of them, as the model gets them in use; float16 weights
        do not require them, and then the loss is not known
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape; default: the first sample of the calibration data
    :param labels: the right class of each sample; default: those in the data. With them, the report has the
        accuracy
    :param method: how ranges are found in the calibration data; ``auto`` tries them and takes the best
    :param io: the type of inputs and outputs of the int8 model
    :param keep_float: names of layers that stay float
    :param int16: names of layers that get int16 activations
    :param auto: the loss that is allowed, ``0.5`` (points of accuracy) or ``"30dB"``: layers become int16 or
        float in the cheapest way that reaches it
    :param core: the core whose instructions decide between the ways to reach ``auto``
    :param range: what the smallest and the largest pixel or sample become: ``(0, 1)``
    :param mean: is subtracted after the range, per channel
    :param std: divides after the mean, per channel
    :param samples: at most so many samples are used, evenly spread
    :param leaves: the type of the weights in the leaves of trees
    :param weights: ``int4``: four bits; ``mixed``: four bits where at most ``max_loss`` is lost; ``float16``:
        the model stays float
    :param max_loss: what ``mixed`` may lose more than int8: ``1`` (points of accuracy), or ``"30dB"`` to keep
    :param test: data that is not used to calibrate, on which the report compares int8, mixed and int4
    :param shapes: shapes of inputs that the model leaves open: ``{"input": (1, 16, 8)}``; default: 1 for
        each open axis
    :param bounds: the longest past of a decoder whose caches grow: ``{"past_sequence_length": 128}``
    :param operators: Python files with operators of your own, which stay float
    :param progress: is called with the name of a step, how much of it is done, and how much there is
    """
    if example is None and calibration is not None:
        example = example_of(calibration)
    source = as_model(model, example, shapes=shapes)
    low, high = range if range is not None else (None, None)
    with (
        data_file(calibration, "calibration") as data,
        data_file(labels, "labels") as truth,
        data_file(test, "test") as held_out,
    ):
        request = Request(
            NO_DATA if data is None and weights == "float16" else given(data, "calibration"),
            method,
            io,
            tuple(keep_float),
            tuple(int16),
            truth,
            parse_goal(str(auto)) if auto is not None else None,
            Scaling(low, high, tuple(mean), tuple(std)),
            samples,
            leaves,
            weights=weights,
            max_loss=parse_goal(str(max_loss)) if max_loss is not None else None,
            test=held_out,
            core=core,
        )
        return convert(source, request, progress, paths(operators), bounds)


def convert(
    model: Model,
    request: Request,
    progress: Progress | None = None,
    operators: Sequence[Path] = (),
    bounds: Mapping[str, int] | None = None,
) -> QuantizedModel:
    """Quantise with the settings of the command line and of manifests."""
    with model.file() as path:
        file = with_outputs(read_model(path), model.chosen)
        result = quantize_model(file, request, model.shapes, progress, operators, bounds)
    return QuantizedModel(model.name, stored=result.content, report=result.report)
