# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Connects a front end to a model: rows per run, and the conversion of features to the type of the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.settings import FrontEnd, from_items
from tinyml.ir import Array, DType, Graph, Tensor

PUBLISHED = (256, 333, 666, -128)
"""Multiplier, half, divisor and zero point with which micro_speech and microWakeWord fill int8 inputs."""

PUBLISHED_RANGE = 26.0
"""Real value of the largest feature in those models."""


@dataclass(frozen=True)
class Whole:
    """Integer features to integers: (feature * multiplier + half) / divisor + zero point."""

    multiplier: int
    half: int
    divisor: int
    zero_point: int

    def apply(self, features: Array, dtype: DType) -> Array:
        limits = np.iinfo(dtype.numpy)
        scaled = (features.astype(np.int64) * self.multiplier + self.half) // self.divisor
        return np.clip(scaled + self.zero_point, limits.min, limits.max).astype(dtype.numpy)


@dataclass(frozen=True)
class Real:
    """Features to real numbers (``quantized`` is None), or from real numbers to a quantised input."""

    scale: float
    quantized: tuple[float, int] | None = None

    def apply(self, features: Array, dtype: DType) -> Array:
        real = features.astype(np.float32)
        if self.scale != 1.0:
            real = real * np.float32(self.scale)
        if self.quantized is None:
            return real
        limits = np.iinfo(dtype.numpy)
        scale, zero_point = self.quantized
        steps = np.rint(real / np.float32(scale))
        return np.clip(steps + zero_point, limits.min, limits.max).astype(dtype.numpy)


@dataclass(frozen=True)
class Feed:
    """Everything that decides NAME_feed()."""

    frontend: FrontEnd
    tensor: Tensor
    rows: int  # of a run
    stride: int  # new rows for each run
    conversion: Whole | Real

    def inputs(self, samples: Array) -> Array:
        """What the model gets for a recording, one run after the other: (runs, *shape of the input)."""
        rows = self.conversion.apply(self.frontend.compute(samples), self.tensor.dtype)
        count = max((len(rows) - self.rows) // self.stride + 1, 0)
        places = np.arange(count)[:, None] * self.stride + np.arange(self.rows)
        return rows[places].reshape(count, *self.tensor.shape)


def attach(frontend: FrontEnd, graph: Graph) -> Feed:
    """Fit the front end to the model's input, or say why it does not fit."""
    if len(graph.inputs) != 1:
        raise ConfigError(
            f"the model has {len(graph.inputs)} inputs ({', '.join(graph.inputs)}); a front end fills one",
            "compute the features in the application, and leave 'frontend' out",
        )
    tensor = graph.tensors[graph.inputs[0]]
    rows = rows_of(tensor.name, tensor.shape, frontend)
    stride = frontend.stride or (rows if graph.states else 1)
    if stride > rows:
        raise ConfigError(
            f"a stride of {stride} rows skips features: the model takes {rows} rows per run",
            f"stride: 1 to {rows}",
        )
    return Feed(frontend, tensor, rows, stride, _conversion(frontend, tensor))


def rows_of(name: str, shape: tuple[int, ...], frontend: FrontEnd) -> int:
    """How many rows of features fill the input."""
    width = frontend.settings.width
    elements = int(np.prod(shape, dtype=np.int64))
    body = [extent for extent in shape if extent != 1]
    flat = len(body) <= 1 and elements % width == 0
    if not flat and (not body or body[-1] != width):
        text = "x".join(map(str, shape))
        hint = f"a front end with {body[-1]} features in a row" if body else "a model that takes features"
        if width in body:
            hint = "a model whose input has the features of one moment next to each other"
        raise ConfigError(
            f"the front end {frontend.kind} gives rows of {width} features; input {name!r} is {text}", hint
        )
    return elements // width


def _conversion(frontend: FrontEnd, tensor: Tensor) -> Whole | Real:
    scale = frontend.settings.scale
    if tensor.dtype.is_float:
        return Real(scale)
    quant = tensor.quant
    if frontend.of.integer and frontend.input == "published":
        if tensor.dtype is not DType.INT8:
            raise ConfigError(
                f"input {tensor.name!r} is {tensor.dtype.value}; published micro models take int8",
                "input: model",
            )
        return Whole(*PUBLISHED)
    if quant is None or quant.per_channel:
        raise ConfigError(
            f"input {tensor.name!r} is {tensor.dtype.value} without a scale: features cannot be converted",
            "a float model, or one whose input is quantised",
        )
    if not frontend.of.integer:
        return Real(scale, (quant.scale, quant.zero_point))
    if (
        frontend.input == "auto"
        and tensor.dtype is DType.INT8
        and _is_published(quant.scale, quant.zero_point)
    ):
        return Whole(*PUBLISHED)
    ratio = scale / quant.scale
    bits = 15
    while bits > 0 and round(ratio * 2**bits) > 0xFFFF:
        bits -= 1
    multiplier = round(ratio * 2**bits)
    if not 0 < multiplier <= 0xFFFF:
        raise ConfigError(
            f"a step of a feature is {scale:g}, but a step of input {tensor.name!r} is {quant.scale:g}",
            "scale: what the training multiplied the features by",
        )
    return Whole(multiplier, 1 << (bits - 1) if bits else 0, 1 << bits, quant.zero_point)


def _is_published(scale: float, zero_point: int) -> bool:
    return zero_point == -128 and abs(scale * 255.5 / PUBLISHED_RANGE - 1) < 0.01


TRAINED_WITH = "tinyml.frontend"
"""Metadata of an ONNX model: the settings of its front end, as ``kind=micro step_ms=10``."""

RATES = ("sample_rate", "sampling_rate")
"""Metadata in which training tools leave the rate of their recordings."""


def check_training(frontend: FrontEnd, metadata: Mapping[str, str]) -> None:
    """Refuse a front end that differs from the one recorded in the model."""
    settings = frontend.settings
    for key in RATES:
        rate = metadata.get(key, "").strip()
        if rate.isdecimal() and int(rate) != settings.rate:
            raise ConfigError(
                f"the model was trained on {rate} samples per second; its front end takes {settings.rate:g}",
                f"rate: {rate}",
            )
    if TRAINED_WITH not in metadata:
        return
    trained = from_items(metadata[TRAINED_WITH].split(), f"the model's metadata {TRAINED_WITH!r}")
    if trained is None:
        return
    if trained.kind != frontend.kind:
        raise ConfigError(
            f"the model was trained with the front end {trained.kind}, not {frontend.kind}",
            f"kind: {trained.kind}",
        )
    theirs, ours = (asdict(end.settings) for end in (trained, frontend))  # type: ignore[call-overload]
    wrong = {key: value for key, value in theirs.items() if ours[key] != value}
    if wrong:
        listed = ", ".join(f"{key} {_text(value)} (here {_text(ours[key])})" for key, value in wrong.items())
        hint = ", ".join(f"{key}: {_text(value)}" for key, value in wrong.items())
        raise ConfigError(f"the model was trained with other settings of its front end: {listed}", hint)


def _text(value: object) -> str:
    """A setting as tinyml.yaml has it: a list with one element is that element."""
    if not isinstance(value, tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    items = [_text(item) for item in value]
    return items[0] if len(items) == 1 else f"[{', '.join(items)}]"
