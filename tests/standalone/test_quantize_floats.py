# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Floats to integers on every core, where rounding and limits are decided: next to every half, beyond all
limits, not numbers, subnormal numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Layer, Quant
from tinyml.ops.quantization.quantize import Quantize
from tinyml.pipeline import Options, compile_graph

MACHINES = [
    "host",
    "qemu-cortex-m3",
    "qemu-cortex-m4",
    "qemu-cortex-m7",
    "qemu-cortex-m33",
    "qemu-cortex-m55",
]
KERNEL = "tinyml_quantize_f32"

ORDINARY = (0.0123, 1 / 255, 2.0**-7, 3.0e5, 1.7e-18, 1.1e18)
SCALES = (*ORDINARY, 1.7e-20, 1.1e-37, 2.9e36)
"""With fractions of all kinds; of the last ones, quotients or products leave what floats hold."""
ZEROS = {DType.INT8: (-128, 5, 127), DType.INT16: (0, -32768, 77)}
NOT_NUMBERS = (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF)
"""Quiet and signalling ones."""
LARGEST = (0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF)
SMALLEST = (0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000)
SPECIAL = np.array((*NOT_NUMBERS, *LARGEST, *SMALLEST), np.uint32).view(np.float32)


def values(rng: np.random.Generator, scale: float, dtype: DType, zero: int) -> Array:
    """Floats around the halves between results, all of those of bytes, and everything special."""
    low, high = (limit - zero for limit in dtype.limits)
    steps = np.arange(low - 2, high + 3) + 0.5
    if len(steps) > 500:
        steps = np.concatenate([steps[:50], steps[-50:], rng.choice(steps, 300), np.arange(-50, 50) + 0.5])
    with np.errstate(over="ignore", under="ignore"):
        halves = (steps * float(np.float32(scale))).astype(np.float32)
        wide = (rng.normal(0, 1, 300) * scale * (high - low)).astype(np.float32)
        spread = rng.integers(0, 2**32, 300, dtype=np.uint32).view(np.float32)
        up = np.nextafter(halves, np.float32(np.inf))
        down = np.nextafter(halves, np.float32(-np.inf))
        near = [
            halves,
            up,
            down,
            np.nextafter(up, np.float32(np.inf)),
            np.nextafter(down, np.float32(-np.inf)),
        ]
    return rng.permutation(np.concatenate([*near, wide, spread, np.tile(SPECIAL, 3)])).astype(np.float32)


def expected(layer: Layer, x: Array) -> Array:
    """As ``evaluate``, and the lowest integer where that says nothing."""
    kept = np.where(np.isnan(x), np.float32(0), x)
    with np.errstate(over="ignore", under="ignore"):
        (found,) = layer.op.evaluate(layer, [kept])
    return np.where(np.isnan(x), layer.output.dtype.limits[0], found).astype(found.dtype)


@pytest.mark.parametrize("even", [True, False], ids=["even", "away"])
@pytest.mark.parametrize("machine", MACHINES)
def test_floats_become_the_nearest_integers(machine: str, even: bool) -> None:
    rng, sketch = np.random.default_rng(7), Sketch()
    inputs, outputs = {}, []
    target = harness.find_machine(machine).target
    for dtype, zeros in ZEROS.items():
        for index, scale in enumerate(SCALES):
            zero = zeros[index % len(zeros)]
            x = values(rng, scale, dtype, zero)
            x = x[: len(x) - index % 4]  # all numbers of elements that are left over
            tensor = sketch.input(x.shape, DType.FLOAT32)
            inputs[tensor.name] = x
            outputs.append(sketch.add(Quantize(dtype, Quant.per_tensor(scale, zero), even), tensor))
    graph = sketch.graph(*outputs)
    compiled = compile_graph(graph, "floats", Provenance("floats", "0" * 64, ""), Options(target=target.name))
    by_fours = sum(chosen.kernel.name == KERNEL for chosen in compiled.selected)
    assert by_fours == (len(ZEROS) * len(ORDINARY) if target.dsp and target.fpu else 0)
    (found,) = harness.run_files(compiled.files, machine, [inputs]).outputs
    for layer in graph.layers():
        x = inputs[layer.input(0).name]
        wanted, name = expected(layer, x), layer.output.name
        wrong = np.flatnonzero(found[name] != wanted)
        assert not len(wrong), (layer.op, x[wrong[:5]], found[name][wrong[:5]], wanted[wrong[:5]])


@pytest.mark.parametrize("dtype", ZEROS)
@pytest.mark.parametrize("machine", ["qemu-cortex-m4", "qemu-cortex-m55"])
def test_an_output_in_place_of_its_input(machine: str, dtype: DType) -> None:
    """The output begins where the input does: nothing is written that is still to be read."""
    sketch, quant = Sketch(), Quant.per_tensor(0.0123, 5)
    x = sketch.input((1, 333), DType.FLOAT32)
    first = sketch.add(Quantize(dtype, quant, True), x)
    graph = sketch.graph(first)
    options = Options(target=harness.find_machine(machine).target.name)
    compiled = compile_graph(graph, "floats", Provenance("floats", "0" * 64, ""), options)
    places = {compiled.plan.places[name] for name in (x.name, first.name)}
    assert len(places) == 1
    given = np.random.default_rng(3).normal(0, 2, (1, 333)).astype(np.float32)
    (found,) = harness.run_files(compiled.files, machine, [{x.name: given}]).outputs
    (layer,) = graph.layers()
    np.testing.assert_array_equal(found[first.name], layer.op.evaluate(layer, [given])[0])
