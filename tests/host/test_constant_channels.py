# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Folding of constant channels: less work, and not one byte of the result changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.sketch import Sketch, macs
from tinyml.ir import Array, DType, Graph, Quant, Tensor
from tinyml.ir.verifier import verify
from tinyml.ops.concat import Concat
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.reshape import Reshape
from tinyml.ops.softmax.softmax import Softmax
from tinyml.passes.fold_constant_channels import fold_constant_channels

X = Quant.per_tensor(0.05, -3)
Y = Quant.per_tensor(0.06, -128)
Z = Quant.per_tensor(0.07, 10)
RELU = (0.0, np.inf)


class Net(Sketch):
    """Int8 layers of which some channels are dead."""

    def dead(self, w: Tensor, channels: list[int], axis: int = 0) -> Tensor:
        values = np.moveaxis(w.value.copy(), axis, 0)
        values[channels] = 0
        self.build.tensors[w.name] = Tensor.constant(w.name, np.moveaxis(values, 0, axis), w.quant)
        return self.build.tensors[w.name]

    def conv(
        self, x: Tensor, outs: int, dead: list[int], kernel: int = 1, pads: int = 0, quant: Quant = Y
    ) -> Tensor:
        w = self.dead(self.weights((outs, kernel, kernel, x.shape[3])), dead)
        op = Conv(pads=(pads,) * 4, clamp=RELU)
        return self.add(op, x, w, self.bias(outs), quant=quant)

    def depthwise(
        self, x: Tensor, dead: list[int], pads: int = 1, times: int = 1, quant: Quant = Y
    ) -> Tensor:
        w = self.dead(self.weights((1, 3, 3, x.shape[3] * times), axis=3), dead, axis=3)
        op = DepthwiseConv(pads=(pads,) * 4, clamp=RELU)
        return self.add(op, x, w, self.bias(w.shape[3]), quant=quant)

    def dense(self, x: Tensor, outs: int, dead: list[int]) -> Tensor:
        w = self.dead(self.weights((outs, x.shape[-1])), dead)
        return self.add(Dense(clamp=RELU), x, w, self.bias(outs), quant=Y)


def image(net: Net, channels: int = 4) -> Tensor:
    return net.input((1, 6, 5, channels), DType.INT8, X)


def pointwise(net: Net) -> Tensor:
    return net.conv(net.conv(image(net), 8, [1, 2, 6]), 5, [])


def padded_consumer(net: Net) -> Tensor:
    """With padding, only channels that are constant zero may be removed."""
    x = net.conv(image(net), 8, [1, 2, 6], quant=Z)
    return net.conv(x, 5, [], kernel=3, pads=1)


def mobilenet(net: Net) -> Tensor:
    x = net.conv(image(net), 8, [0, 3])
    x = net.depthwise(x, [1, 3])
    x = net.conv(x, 12, [5, 7, 11])
    x = net.depthwise(x, [0], times=2)
    return net.conv(x, 6, [])


def residual(net: Net) -> Tensor:
    x = net.conv(image(net), 8, [1, 2, 6])
    a, b = net.conv(x, 8, [0, 2, 4]), net.conv(x, 8, [2, 4, 5])
    return net.conv(net.add(Binary("add"), a, b, quant=Z), 5, [])


def pooled(net: Net) -> Tensor:
    x = net.conv(image(net), 8, [1, 2, 6])
    x = net.add(MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0)), x)
    x = net.add(AveragePool((3, 2), (1, 1), (1, 1), (1, 1, 1, 1)), x)
    x = net.add(Clamp(0.2, 3.0), x)
    return net.conv(x, 5, [])


def flattened(net: Net) -> Tensor:
    x = net.conv(image(net), 8, [1, 2, 6])
    x = net.add(Reshape((1, 6 * 5 * 8)), x)
    x = net.dense(x, 9, [3, 4])
    return net.dense(x, 4, [])


def joined(net: Net) -> Tensor:
    x = image(net)
    a, b = net.conv(x, 4, [1]), net.conv(x, 6, [0, 5])
    return net.conv(net.add(Concat(3), a, b, quant=Y), 5, [])


def read_twice(net: Net) -> Tensor:
    """One reader can do without the channel, the other cannot."""
    x = net.conv(image(net), 8, [1, 2, 6])
    a = net.conv(x, 4, [])
    b = net.add(Softmax(3), x, quant=Quant.per_tensor(1 / 256, -128))
    return net.add(Concat(3), a, net.conv(b, 3, []), quant=Y)


def all_dead(net: Net) -> Tensor:
    return net.conv(net.conv(image(net), 3, [0, 1, 2]), 5, [])


def never_used(net: Net) -> Tensor:
    """Nothing is constant, but the next layer multiplies some channels by zero."""
    x = net.conv(image(net), 8, [])
    w = net.dead(net.weights((5, 1, 1, 8)), [2, 7], axis=3)
    return net.add(Conv(), x, w, net.bias(5), quant=Y)


def saturated(net: Net) -> Tensor:
    """A bias so negative that the clamp always wins."""
    x = image(net)
    w, b = net.weights((8, 1, 1, 4)), net.bias(8)
    values = b.value.copy()
    values[[0, 5]] = -1_000_000
    net.build.tensors[b.name] = b = Tensor.constant(b.name, values)
    return net.conv(net.add(Conv(clamp=RELU), x, w, b, quant=Y), 5, [])


def without_bias(net: Net) -> Tensor:
    x = net.conv(image(net), 8, [1, 2, 6])
    return net.add(Conv(), x, net.weights((5, 1, 1, 8)), quant=Y)


NETS: tuple[tuple[Callable[[Net], Tensor], bool], ...] = (  # and whether something can be removed
    (pointwise, True),
    (padded_consumer, False),
    (mobilenet, True),
    (residual, True),
    (pooled, True),
    (flattened, True),
    (joined, True),
    (read_twice, False),
    (all_dead, True),
    (never_used, True),
    (saturated, True),
    (without_bias, True),
)


@pytest.mark.parametrize("make,shrinks", NETS, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("seed", range(3))
def test_same_bytes_with_less_work(make: Callable[[Net], Tensor], shrinks: bool, seed: int) -> None:
    net = Net(seed)
    graph = net.graph(make(net))
    folded = fold_constant_channels(graph)
    verify(folded, "fold_constant_channels")
    if shrinks:
        assert macs(folded) < macs(graph)
    for _ in range(4):
        sample = net.sample()
        before, after = interpret(graph, sample), interpret(folded, sample)
        for name in graph.outputs:
            assert np.array_equal(before[name], after[name])


def test_zero_in_padding_is_zero() -> None:
    """A constant that is the zero point may meet padding."""
    net = Net(0)
    x = image(net)
    w, b = net.dead(net.weights((8, 1, 1, 4)), [1, 2]), net.bias(8)
    values = b.value.copy()
    values[[1, 2]] = 0
    net.build.tensors[b.name] = b = Tensor.constant(b.name, values)
    graph = net.graph(net.conv(net.add(Conv(), x, w, b, quant=Z), 5, [], kernel=3, pads=1))
    folded = fold_constant_channels(graph)
    assert [layer.output.shape[3] for layer in folded.layers()] == [6, 5]
    sample = net.sample()
    assert np.array_equal(
        interpret(graph, sample)[graph.outputs[0]], interpret(folded, sample)[graph.outputs[0]]
    )


def test_without_constant_channels_nothing_changes() -> None:
    net = Net(0)
    graph = net.graph(net.conv(net.conv(image(net), 8, []), 5, []))
    assert fold_constant_channels(graph) is graph


def test_float() -> None:
    net = Net(0)
    x = net.input((1, 6, 5, 4), DType.FLOAT32)
    w = net.build.constant(np.where(np.arange(8).reshape(8, 1, 1, 1) % 3, net.real(8, 1, 1, 4).value, 0), "w")
    y = net.add(Conv(clamp=RELU), x, net.build.constant(w.value.astype(np.float32), "w"), net.real(8))
    graph = net.graph(net.add(Conv(), y, net.real(5, 1, 1, 8), net.real(5)))
    folded = fold_constant_channels(graph)
    assert macs(folded) < macs(graph)
    sample = net.sample()
    before, after = (interpret(g, sample)[graph.outputs[0]] for g in (graph, folded))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


def test_visual_wake_words(models_folder: Path) -> None:
    """The published model with many dead channels: its figures, and every byte of every golden."""
    from tinyml import importers
    from tinyml.passes.remove_dead_code import remove_dead_code

    graph = remove_dead_code(importers.load(models_folder / "mlperf_vww_int8.tflite"))
    folded = fold_constant_channels(graph)
    assert macs(graph) == 7_489_664
    assert macs(folded) <= 3_730_000
    assert flash_bytes(folded) <= 37_462
    goldens = np.load(models_folder / "mlperf_vww_int8.npz")
    for suffix in ("", "_s1", "_s2", "_s3"):
        found = interpret(folded, {graph.inputs[0]: goldens[f"in0{suffix}"]})[graph.outputs[0]]
        assert np.array_equal(found, wanted(goldens, f"out0{suffix}"))


def wanted(goldens: dict[str, Array], key: str) -> Array:
    return goldens[f"tfl214_{key}"] if f"tfl214_{key}" in goldens else goldens[key]


def flash_bytes(graph: Graph) -> int:
    """Weights, biases and multipliers: four bytes per output channel of a layer that has weights."""
    total = 0
    for layer in graph.layers():
        constants = [t for t in layer.inputs if t is not None and t.is_constant]
        total += sum(t.bytes for t in constants)
        if constants and not isinstance(layer.op, Dense):
            total += 4 * layer.output.shape[-1]
    return total
