# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two whole models on int8 and on int16 activations, with random weights: for ``tools.worst_shapes``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.datasets import arrays
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Graph, Op, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.reshape import Reshape
from tinyml.pipeline import Options, compile_graph

KINDS = ("int8", "int16")


class Model:
    """A chain of layers on one type."""

    def __init__(self, kind: str) -> None:
        self.sketch = Sketch(seed=16)
        self.wide = kind == "int16"
        self.dtype = DType.INT16 if self.wide else DType.INT8

    def quant(self, scale: float, zero: int) -> Quant:
        """int16 has 256 times finer steps, and no zero point."""
        return Quant.per_tensor(scale / 256, 0) if self.wide else Quant.per_tensor(scale, zero)

    def input(self, *shape: int) -> Tensor:
        return self.sketch.input(shape, self.dtype, self.quant(0.05, 3))

    def weighted(self, op: Op, x: Tensor, weights: tuple[int, ...], axis: int = 0) -> Tensor:
        """A layer with weights that are spread as trained ones are."""
        outs, rng = weights[axis], self.sketch.rng
        values = np.clip(rng.normal(0, 40, weights), -127, 127).astype(np.int8)
        scales = tuple(float(s) for s in rng.uniform(0.005, 0.02, outs))
        w = self.sketch.build.constant(values, "w", Quant(scales, (0,) * outs, axis))
        bias = self.sketch.bias(outs, dtype="int64" if self.wide else "int32")
        return self.sketch.add(op, x, w, bias, quant=self.quant(0.1, -128))


def keywords(kind: str) -> Graph:
    """The keyword spotter of MLPerf Tiny (DS-CNN), without its softmax."""
    model = Model(kind)
    y = model.weighted(
        Conv((2, 2), pads=(4, 1, 5, 1), clamp=(0, np.inf)), model.input(1, 49, 10, 1), (64, 10, 4, 1)
    )
    for _ in range(4):
        y = model.weighted(DepthwiseConv(pads=(1, 1, 1, 1), clamp=(0, np.inf)), y, (1, 3, 3, 64), 3)
        y = model.weighted(Conv(clamp=(0, np.inf)), y, (64, 1, 1, 64))
    y = model.sketch.add(AveragePool(y.shape[1:3], (1, 1)), y)
    y = model.sketch.add(Reshape((1, 64)), y)
    return model.sketch.graph(model.weighted(Dense(), y, (12, 64)))


def denoiser(kind: str) -> Graph:
    """Sound of 256 samples through convolutions with stride 2 and, back, transposed ones."""
    model = Model(kind)
    y = model.input(1, 1, 256, 1)
    for ins, outs in ((1, 16), (16, 32), (32, 64)):
        y = model.weighted(Conv((1, 2), pads=(0, 3, 0, 4), clamp=(0, np.inf)), y, (outs, 1, 9, ins))
    for ins, outs in ((64, 32), (32, 16), (16, 1)):
        op = ConvTranspose((1, 2), pads=(0, 1), outputs=(1, 2 * y.shape[2]))
        y = model.weighted(op, y, (outs, 1, 4, ins))
    return model.sketch.graph(y)


def denoiser_with_helium() -> tuple[int, int, int]:
    """Instructions for products, those of them that multiply nothing, and outputs (conv_mve_s16.c)."""
    products = full = outputs = 0
    for layer in denoiser("int16").layers():
        transposed = isinstance(layer.op, ConvTranspose)
        outs, *_, ins = layer.input(1).shape
        taps = layer.input(1).shape[2] // (2 if transposed else 1)  # of one of two parts
        positions = int(layer.output.shape[2])
        steps = -(-positions // 4) * -(-outs // 2)  # four windows, two filters
        products += steps * -(-taps * ins // 8) * 14
        full += positions * outs * taps * ins * 14 // 64
        outputs += positions * outs
    return products, products - full, outputs


MODELS: dict[str, Callable[[str], Graph]] = {"keyword spotter": keywords, "1-D denoiser": denoiser}


@dataclass(frozen=True)
class Run:
    """One run of a model with the compiler's own kernels."""

    instructions: int
    multiplications: int
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    kernels: frozenset[str]


def run(name: str, kind: str, machine: str) -> Run:
    graph = MODELS[name](kind)
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable")
    compiled = compile_graph(graph, "model", Provenance("model", "0" * 64, ""), options)
    inputs = arrays.pattern_inputs(graph)
    result = harness.run_files(compiled.files, machine, [inputs])
    assert result.instructions is not None
    return Run(
        result.instructions[0],
        sum(int(layer.op.macs(layer)) for layer in graph.layers()),
        inputs,
        result.outputs[0],
        frozenset(one.kernel.name for one in compiled.selected),
    )
