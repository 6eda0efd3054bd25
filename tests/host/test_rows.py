# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``io: rows``: the application feeds the input as it arrives, and the results are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.chains import Chain, random_chain
from tests.support.sketch import Sketch
from tinyml.bands.arrival import waits
from tinyml.emit.model import Provenance
from tinyml.errors import UnsupportedError
from tinyml.interpret import interpret
from tinyml.ir import DType, Graph, Quant
from tinyml.ops.conv.conv import Conv
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.pipeline import Compiled, Options, compile_graph, compile_model


def compiled(graph: Graph, name: str = "fed", target: str = "host", optimize: str = "balanced") -> Compiled:
    options = Options(target=target, io="rows", optimize=optimize)
    return compile_graph(graph, name, Provenance("chain", "0" * 64, ""), options)


def check(items: Sequence[tuple[Item, Graph]], exact: bool = True) -> None:
    """tests/support/batch.c feeds them in parts of all sizes, and feeds what is not allowed."""
    outcomes = run_batch([item for item, _ in items])
    for item, graph in items:
        outcome = outcomes[item.name]
        assert not outcome.failure, outcome.failure
        wanted = [values[graph.outputs[0]] for values in interpret(graph, item.samples)]
        for found, expected in zip(outcome.outputs, wanted, strict=True):
            (value,) = found.values()
            if exact:
                np.testing.assert_array_equal(value, expected, item.name)
            else:
                close = 1e-5 * np.abs(expected).max()
                np.testing.assert_allclose(value, expected, rtol=0, atol=close, err_msg=item.name)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_numbers(dtype: DType) -> None:
    """Chains of all kinds of windows: strides, padding, rows at the end that no window reads."""
    items, refused = [], 0
    for seed in range(36):
        chain = random_chain(seed, dtype)
        graph, name = chain.graph(), f"fed{seed}"
        if len(graph.consumers()[graph.inputs[0]]) > 1:  # a residual block around the input
            with pytest.raises(UnsupportedError, match="is read 2 times"):
                compiled(graph)
            refused += 1
            continue
        made = compiled(graph, name, optimize=("balanced", "ram", "speed")[seed % 3])
        assert f"int {name}_feed_rows(" in made.files[f"{name}.h"]
        items.append((Item(name, made.files, [chain.sketch.sample() for _ in range(3)]), graph))
    assert len(items) > 15
    assert refused > 5
    check(items, exact=dtype is DType.INT8)


def one_conv(dtype: DType = DType.INT8, rows: int = 24) -> Chain:
    chain = Chain(1, dtype, extents=(rows, 6))
    chain.same = True
    chain.add("conv", 8)
    return chain


def test_a_float_interface_is_quantised_row_by_row() -> None:
    chain = Chain(4, DType.FLOAT32, extents=(24, 6))
    chain.dtype = DType.INT8
    quant = Quant.per_tensor(0.03, 3)
    chain.end = chain.sketch.add(Quantize(DType.INT8, quant), chain.end)
    for kind in ("conv", "depthwise", "conv"):
        chain.add(kind, 12)
    graph = chain.graph()
    made = compiled(graph)
    assert made.plan.arena_bytes < chain.sketch.inputs[0].bytes
    assert made.selected[0].layer.op.label().startswith("arrival_quantize_conv")
    check([(Item("fed", made.files, [chain.sketch.sample() for _ in range(2)]), graph)])


def test_unsigned_bytes_become_signed_row_by_row() -> None:
    sketch = Sketch(2)
    x = sketch.input((1, 20, 6, 3), DType.UINT8, Quant.per_tensor(0.02, 128))
    op, weights = Conv((2, 2), pads=(1, 1, 0, 0)), sketch.weights((8, 3, 3, 3))
    y = sketch.add(op, x, weights, sketch.bias(8), quant=x.quant, dtype=DType.UINT8)
    graph = sketch.graph(y)
    made = compiled(graph)
    assert made.selected[0].layer.op.label() == "arrival_requantize_conv"
    check([(Item("fed", made.files, [sketch.sample() for _ in range(2)]), graph)])


def test_up_to_the_mean_of_all_rows() -> None:
    """Nothing but a few rows of each tensor is ever in memory; the rows are those of a reshaped input."""
    chain = Chain(5, extents=(25, 5))
    flat = chain.sketch.inputs[0]
    chain.sketch.inputs[0] = chain.sketch.input((1, flat.elements), flat.dtype, flat.quant)
    chain.sketch.inputs.pop()
    chain.end = chain.sketch.add(Reshape(flat.shape), chain.sketch.inputs[0], quant=flat.quant)
    chain.same = True
    for kind in ("conv", "depthwise", "conv", "depthwise", "conv"):
        chain.add(kind, 32)
    pool = AveragePool((25, 5), (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(pool, chain.end, quant=chain.end.quant)
    graph = chain.graph()
    made = compiled(graph, optimize="ram")
    assert made.selected[1].layer.op.label().endswith("average_pool")
    assert "#define FED_ROWS 25" in made.files["fed.h"]
    check([(Item("fed", made.files, [chain.sketch.sample() for _ in range(2)]), graph)])


def test_rows_that_no_window_reads() -> None:
    sketch = Sketch(3)
    x = sketch.input((1, 23, 6, 4), DType.INT8, Quant.per_tensor(0.1, 0))
    y = sketch.add(Conv((4, 4)), x, sketch.weights((8, 3, 3, 4)), sketch.bias(8), quant=x.quant)
    graph = sketch.graph(y)
    made = compiled(graph)
    last = waits(made.selected[0].layer)[-1]
    assert last.until == y.shape[1]
    check([(Item("fed", made.files, [sketch.sample() for _ in range(2)]), graph)])


def two_inputs() -> Graph:
    chain = one_conv()
    other = chain.sketch.input((1, 4), DType.INT8, Quant.per_tensor(0.1, 0))
    return chain.sketch.graph(chain.end, chain.sketch.add(Reshape((4,)), other))


def channels_first() -> Graph:
    sketch = Sketch(1)
    x = sketch.input((1, 3, 12, 12), DType.FLOAT32)
    y = sketch.add(Transpose((0, 2, 3, 1)), x)
    return sketch.graph(sketch.add(Conv(), y, sketch.real(4, 3, 3, 3), sketch.real(4)))


def a_sum_first() -> Graph:
    sketch = Sketch(1)
    x = sketch.input((1, 12, 12, 3), DType.FLOAT32)
    return sketch.graph(sketch.add(Reduce("sum", (1,)), x))


def one_row() -> Graph:
    return one_conv(rows=1).graph()


@pytest.mark.parametrize(
    "graph,message",
    [
        (two_inputs, "the model has 2 inputs"),
        (channels_first, "Transpose 'Transpose0' needs all of it"),
        (a_sum_first, r"'in0' \(1x12x12x3\): Reduce 'Reduce0' needs all of it"),
        (one_row, "cannot be computed in bands of rows"),
    ],
)
def test_models_that_need_the_whole_input(graph: Callable[[], Graph], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as raised:
        compiled(graph())
    assert raised.value.hint


def test_vww_needs_less_than_its_image(models_folder: Path) -> None:
    model = models_folder / "mlperf_vww_int8.tflite"
    found = compile_model(model, Options(target="cortex-m4", io="rows"))
    assert found.plan.arena_bytes < 19_000 < 96 * 96 * 3
    assert found.summary["rows"] == {"count": 96, "row_bytes": 288}
