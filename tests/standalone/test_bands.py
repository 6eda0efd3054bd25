# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Chains of layers in bands of rows, with the kernels of every core: equal to numpy, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.chains import FLAT, Chain, join_everything, random_chain
from tests.support.channels_first import channels_first
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Quant
from tinyml.ir.interpreter import interpret
from tinyml.memory import placement
from tinyml.memory.bands.banded import HEIGHT, WIDTH, Banded
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.pipeline import Options, compile_graph

CHECKED = harness.Options(check_arena=True)

CHAINS = 12
FLAT_CHAINS = 6  # along the width


@pytest.mark.tenth
@pytest.mark.parametrize("machine", harness.CORES)
def test_chains(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "in_bands", join_everything)
    sketch = Sketch(3)
    ends = [random_chain(seed, sketch=sketch).end for seed in range(CHAINS)]
    ends += [random_chain(seed, sketch=sketch, extents=FLAT).end for seed in range(FLAT_CHAINS)]
    graph, sample = sketch.graph(*ends), sketch.sample()
    options = Options(target=harness.find_machine(machine).target.name)
    compiled = compile_graph(graph, "chains", Provenance("chains", "0" * 64, ""), options)
    axes = [chosen.layer.op.axis for chosen in compiled.selected if isinstance(chosen.layer.op, Banded)]
    assert axes.count(HEIGHT) > CHAINS / 2
    assert axes.count(WIDTH) > FLAT_CHAINS / 2
    result = harness.run_files(compiled.files, machine, [sample], options=CHECKED)
    (expected,) = interpret(graph, [sample])
    different = [y for y in graph.outputs if not np.array_equal(result.outputs[0][y], expected[y])]
    assert not different


@pytest.mark.parametrize("machine", ["qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55"])
def test_an_input_that_arrives_in_rows(machine: str) -> None:
    """Row by row: float rows are quantised, all windows overlap, and a mean of all rows ends the network."""
    chain = Chain(7, DType.FLOAT32, extents=(31, 12))
    chain.dtype, chain.same = DType.INT8, True
    chain.end = chain.sketch.add(Quantize(DType.INT8, Quant.per_tensor(0.03, 3)), chain.end)
    chain._weighted(Conv((2, 2), pads=(1, 1, 1, 1)), (16, 3, 3, 4), 0)
    for kind, channels in (("depthwise", 16), ("conv", 24), ("pool", 24), ("conv", 16)):
        chain.add(kind, channels)
    mean = AveragePool(chain.end.shape[1:3], (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(mean, chain.end, quant=chain.end.quant)
    graph, samples = chain.graph(), [chain.sketch.sample() for _ in range(2)]
    options = Options(target=harness.find_machine(machine).target.name, io="rows", optimize="ram")
    compiled = compile_graph(graph, "fed", Provenance("fed", "0" * 64, ""), options)
    assert compiled.selected[0].layer.op.label().startswith("arrival_quantize_conv_depthwise_conv")
    assert compiled.plan.arena_bytes < chain.sketch.inputs[0].bytes / 2
    result = harness.run_files(compiled.files, machine, samples, options=CHECKED)
    for found, expected in zip(result.outputs, interpret(graph, samples), strict=True):
        np.testing.assert_array_equal(found[graph.outputs[0]], expected[graph.outputs[0]])


@pytest.mark.parametrize("machine", ["qemu-cortex-m0", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32"])
@pytest.mark.parametrize("extents", [(1, 60), (24, 10)])
def test_channels_first(machine: str, extents: tuple[int, int]) -> None:
    """Steps or pixels arrive with all of their channels, which come first in the samples."""
    chain = Chain(3, DType.INT8, extents=extents, channels=3)
    for kind, channels in (("conv", 16), ("pool", 0), ("conv", 8)):
        chain.add(kind, channels)
    graph = channels_first(chain.graph())
    samples = [{"given": chain.sketch.sample()["in0"].transpose(0, 3, 1, 2)} for _ in range(2)]
    options = Options(target=harness.find_machine(machine).target.name, io="rows", optimize="ram")
    compiled = compile_graph(graph, "fed", Provenance("fed", "0" * 64, ""), options)
    assert compiled.summary["rows"]["axes"] == [0, 2, 3, 1]
    result = harness.run_files(compiled.files, machine, samples, options=CHECKED)
    for found, expected in zip(result.outputs, interpret(graph, samples), strict=True):
        np.testing.assert_array_equal(found[graph.outputs[0]], expected[graph.outputs[0]])


@pytest.mark.parametrize("machine", ["qemu-cortex-m0", "qemu-cortex-m4", "qemu-cortex-m55"])
def test_rows_that_are_prepared_first(machine: str) -> None:
    """16-bit samples of three axes, normalised by channel, quantised twice."""
    sketch, quant = Sketch(2), Quant.per_tensor(0.04, -5)
    x = sketch.input((1, 1, 60, 3), DType.INT16)
    y = sketch.add(Cast(DType.FLOAT32), x)
    y = sketch.add(Binary("mul"), y, sketch.constant(np.float32(1 / 8192)))
    y = sketch.add(Binary("sub"), y, sketch.constant([0.25, 0.5, 0.75]))
    y = sketch.add(Quantize(DType.INT8, Quant.per_tensor(0.03, 3)), y)
    y = sketch.add(Requantize(True), y, quant=quant)
    y = sketch.add(
        Conv((1, 2), pads=(0, 2, 0, 2)), y, sketch.weights((8, 1, 5, 3)), sketch.bias(8), quant=quant
    )
    graph, samples = sketch.graph(y), [sketch.sample() for _ in range(2)]
    options = Options(target=harness.find_machine(machine).target.name, io="rows")
    compiled = compile_graph(graph, "fed", Provenance("fed", "0" * 64, ""), options)
    assert compiled.selected[0].layer.op.label() == "arrival_cast_mul_sub_quantize_requantize_conv"
    result = harness.run_files(compiled.files, machine, samples, options=CHECKED)
    for found, expected in zip(result.outputs, interpret(graph, samples), strict=True):
        np.testing.assert_array_equal(found[graph.outputs[0]], expected[graph.outputs[0]])
