# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""SVDF: a dense layer over features, then one filter over the last moments for each unit and rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Quant, Tensor, TensorType, given
from tinyml.ops.concat import concat
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.quantization.quantize import IDENTITY
from tinyml.ops.reduce.reduce import reduced
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.clamped import Clamped
from tinyml.ops.shared.operands import extents, optional
from tinyml.ops.shared.quant import clamp_range, is_quantized, quant_of
from tinyml.ops.shared.real import real_weights
from tinyml.ops.slice import take

X, FEATURES, TIME, BIAS, STATE = range(5)


def filters_fit(layer: Layer[Svdf]) -> bool:
    """Feature weights are filters x features, time weights filters x memory; rank divides the filters."""
    x, features, time = (layer.input(i).shape for i in (X, FEATURES, TIME))
    if len(x) != 2 or len(features) != 2 or len(time) != 2 or layer.op.rank < 1:
        return False
    filters, memory = time
    return (
        features == (filters, x[1])
        and filters % layer.op.rank == 0
        and extents(optional(layer, BIAS), (filters // layer.op.rank,))
        and layer.input(STATE).shape == (x[0], filters * memory)
    )


def all_quantised(layer: Layer[Svdf]) -> bool:
    """Input, weights and state are quantised per tensor."""
    quants = [layer.input(i).quant for i in (X, FEATURES, TIME, STATE)]
    return all(quant is not None and not quant.per_channel for quant in quants)


def features_fit(layer: Layer[Svdf]) -> bool:
    """The accumulator of a feature filter stays below 2^31 for every input."""
    features = layer.input(FEATURES)
    reach = -DType.INT8.limits[0] + abs(quant_of(layer.input(X)).zero_point)
    largest = -DType.INT8.limits[0] * features.shape[1]
    if features.data is not None:
        largest = int(np.abs(features.data.astype(np.int64)).sum(axis=1).max(initial=0))
    return largest * reach < 1 << 31


@dataclass(frozen=True)
class Svdf(Clamped):
    """The integer form. Inputs: x, feature weights, time weights, bias or none, state.

    Outputs: the units, and the state with the newest moment in it.
    """

    operands = (filters_fit, all_quantised, features_fit)
    folds: ClassVar[bool] = False
    rank: int = 1
    quant: Quant = IDENTITY  # of the output

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w, state = given(inputs, X), given(inputs, FEATURES), given(inputs, STATE)
        units = w.shape[0] // self.rank
        return TensorType((x.shape[0], units), DType.INT8, self.quant), state.type

    def macs(self, layer: Layer) -> int:
        return layer.input(X).shape[0] * (layer.input(FEATURES).elements + layer.input(TIME).elements)

    def scales(self, layer: Layer) -> tuple[tuple[int, int], tuple[int, int]]:
        """To the state, and from the state to the output; TFLite computes them in float32."""
        x, features, time, state = (
            np.float32(quant_of(layer.input(i)).scale) for i in (X, FEATURES, TIME, STATE)
        )
        return (
            fp.quantize_multiplier(float(x * features / state)),
            fp.quantize_multiplier(float(state * time / np.float32(self.quant.scale))),
        )

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, features, time, state = (given(inputs, i).astype(np.int64) for i in (X, FEATURES, TIME, STATE))
        to_state, to_output = self.scales(layer)
        zero = quant_of(layer.input(STATE)).zero_point
        low, high = layer.input(STATE).dtype.limits
        batches, (filters, memory) = x.shape[0], time.shape
        newest = (x - quant_of(layer.input(X)).zero_point) @ features.T
        newest = np.clip(fp.multiply_by_quantized_multiplier(newest, *to_state), low, high) + zero
        moments = state.reshape(batches, filters, memory)
        moments = np.concatenate([moments[:, :, 1:], newest[:, :, None]], axis=2)
        sums = ((moments - zero) * time).sum(axis=2).reshape(batches, -1, self.rank).sum(axis=2)
        if inputs[BIAS] is not None:
            sums = sums + inputs[BIAS]
        sums = np.clip(sums, fp.INT32_MIN, fp.INT32_MAX)
        scaled = fp.multiply_by_quantized_multiplier(sums, *to_output) + self.quant.zero_point
        y = np.clip(scaled, *clamp_range(self.clamp, layer.output)).astype(np.int8)
        return y, moments.reshape(state.shape).astype(layer.input(STATE).dtype.numpy)


def sums_of_time(layer: Layer[Svdf]) -> int:
    """What the bias and the products of a unit with all moments add up to at most."""
    time, state = layer.input(TIME), layer.input(STATE)
    reach = -state.dtype.limits[0] + abs(quant_of(state).zero_point)
    sizes = np.full(time.shape, -time.dtype.limits[0], np.int64)
    if time.data is not None:
        sizes = np.abs(time.data.astype(np.int64))
    bias = layer.input(BIAS).data if layer.has_input(BIAS) else np.zeros(1, np.int64)
    largest = 1 << 31 if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
    return largest + reach * int(sizes.reshape(-1, layer.op.rank * time.shape[1]).sum(axis=1).max(initial=0))


def integer_types(layer: Layer) -> bool:
    """Input and feature weights are int8; time weights and state are both int16 or both int8."""
    time, state = layer.input(TIME), layer.input(STATE)
    small = all(is_quantized(layer.input(i), DType.INT8) for i in (X, FEATURES))
    return small and time.dtype is state.dtype and is_quantized(state, DType.INT8, DType.INT16)


class SvdfLoops(Kernel[Svdf]):
    """The newest moment of every filter, then the sums over all moments of a unit."""

    name = "svdf loops"
    constraints = (integer_types,)

    def emit(self, layer: Layer[Svdf], sheet: Sheet) -> None:
        op, state = layer.op, layer.input(STATE)
        (filters, memory), inputs = layer.input(TIME).shape, layer.input(X).shape[1]
        batches, units = layer.output.shape
        (m1, s1), (m2, s2) = op.scales(layer)
        low, high = state.dtype.limits
        zero_x, zero_state = quant_of(layer.input(X)).zero_point, quant_of(state).zero_point
        sheet.include("<tinyml/fixed_point.h>")
        x, old, y, new = sheet.x(X), sheet.x(STATE), sheet.y(0), sheet.y(1)
        with sheet.loop("r", batches * filters):
            sheet.line(f"const int8_t *w = &{sheet.x(FEATURES)}[r % {filters} * {inputs}];")
            sheet.line(f"const int8_t *in = &{x}[r / {filters} * {inputs}];")
            sheet.line("int32_t acc = 0;")
            sheet.line()
            with sheet.loop("i", inputs):
                sheet.line(f"acc += w[i] * (in[i] - ({zero_x}));")
            with sheet.loop("i", memory - 1):
                sheet.line(f"{new}[r * {memory} + i] = {old}[r * {memory} + i + 1];")
            sheet.line(f"acc = tinyml_clamp(tinyml_rescale(acc, {m1}, {s1}), {low}, {high});")
            sheet.line(f"{new}[r * {memory} + {memory - 1}] = ({state.dtype.c})(acc + ({zero_state}));")
        with sheet.loop("u", batches * units):
            span = op.rank * memory
            sheet.line(f"const {state.dtype.c} *w = &{sheet.x(TIME)}[u % {units} * {span}];")
            sheet.line(f"const {state.dtype.c} *moments = &{new}[u * {span}];")
            start = f"{sheet.x(BIAS)}[u % {units}]" if layer.has_input(BIAS) else "0"
            wide = sums_of_time(layer) > fp.INT32_MAX
            sheet.line(f"{'int64_t' if wide else 'int32_t'} acc = {start};")
            sheet.line()
            with sheet.loop("i", span):
                sheet.line(f"acc += {'(int64_t)' if wide else ''}w[i] * (moments[i] - ({zero_state}));")
            if wide:
                sheet.line("acc = acc > INT32_MAX ? INT32_MAX : acc < INT32_MIN ? INT32_MIN : acc;")
            bounds = clamp_range(op.clamp, layer.output)
            value = f"tinyml_rescale({'(int32_t)' if wide else ''}acc, {m2}, {s2}) + ({op.quant.zero_point})"
            sheet.line(f"{y}[u] = (int8_t)tinyml_clamp({value}, {bounds[0]}, {bounds[1]});")


register_kernels(Svdf, SvdfLoops())


@tflite_op("SVDF")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, state, rank, output = node.input(X), node.input(STATE), node.options.Rank(), node.outputs[0]
    for index in (FEATURES, TIME):
        node.const(index)
    if x.dtype.is_float:
        return [_real(node, build, rank)]
    if output.quant is None or output.dtype is not DType.INT8:
        raise UnsupportedError(f"SVDF operator {node.name!r} on {x.dtype.value}", "float32 or int8")
    operands = [x, node.input(FEATURES), node.input(TIME), node.optional(BIAS), state]
    node.asked.add("activation")  # a ReLU, whose outputs have -128 as zero; LiteRT limits them to int8 only
    y, moments = build.add(Svdf(rank, output.quant), operands)
    build.update(state, moments)
    return [y]


def _real(node: TfliteNode, build: Builder, rank: int) -> Tensor:
    """On real numbers it is a composition of other operators."""
    x, state = node.input(X), node.input(STATE)
    features, time = (real_weights(build, x, node.input(i)) for i in (FEATURES, TIME))
    batches, (filters, memory) = x.shape[0], time.shape
    newest = build.add1(Dense(), [x, features])
    newest = build.add1(Reshape((batches, filters, 1)), [newest])
    moments = build.add1(Reshape((batches, filters, memory)), [state])
    moments = concat(build, [take(build, moments, {2: (1, memory - 1, 1)}), newest], 2)
    build.update(state, build.add1(Reshape(state.shape), [moments]))
    product = build.add1(Binary("mul"), [moments, time])
    product = build.add1(Reshape((batches, filters // rank, rank * memory)), [product])
    sums = reduced(build, product, "sum", [2], keep=False)
    bias = node.optional(BIAS)
    if bias is None:
        bias = build.constant(np.zeros(filters // rank, np.float32))
    return build.add1(Binary("add", clamp=node.clamp), [sums, bias])
