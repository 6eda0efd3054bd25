# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``io: rows``: the application feeds the input as it arrives, and the results are the same."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.chains import FLAT, Chain, random_chain
from tests.support.programs import build_program
from tests.support.sketch import Sketch
from tinyml.base.errors import ConfigError, UnsupportedError
from tinyml.emit.model import Provenance
from tinyml.features.settings import from_mapping
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.ir import DType, Graph, Quant
from tinyml.ir.interpreter import interpret
from tinyml.memory.bands.arrival import waits
from tinyml.memory.bands.banded import Banded
from tinyml.ops.conv.conv import Conv
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.ops.transpose import Transpose
from tinyml.pipeline import Compiled, Options, compile_graph, compile_model
from tinyml.projects import cmake, manifest
from tinyml.settings.passing import Io
from tinyml.slots.pack import Slot, pack_compiled
from tinyml.slots.version import parse_version

WAKE_WORD = Path(__file__).parents[2] / "samples" / "wake_word" / "model.onnx"


def compiled(graph: Graph, name: str = "fed", target: str = "host", optimize: str = "balanced") -> Compiled:
    options = Options(target=target, io="rows", optimize=optimize)
    return compile_graph(graph, name, Provenance("chain", "0" * 64, ""), options)


def last_step(seed: int) -> Graph:
    """A convolution that reads all of its input, for a result that needs the end of it."""
    chain = Chain(seed, DType.INT8, FLAT)
    chain.same = True
    for kind in ("conv", "conv", "pool"):
        chain.add(kind, 6)
    shape = chain.end.shape
    op = Slice((0, 0, shape[2] - 1, 0), (1, 1, 1, shape[3]), (1, 1, 1, 1))
    chain.end = chain.sketch.add(op, chain.end)
    return chain.graph()


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


def test_all_rows_arrive_where_only_the_last_step_is_read() -> None:
    """The pass that leaves out steps that nothing reads does not cut an input that arrives in rows."""
    items = []
    for seed in range(4):
        graph, name = last_step(seed), f"last{seed}"
        sketch = Sketch(seed)
        sketch.input(graph.tensors[graph.inputs[0]].shape, DType.INT8, graph.tensors[graph.inputs[0]].quant)
        made = compiled(graph, name)
        assert f"int {name}_feed_rows(" in made.files[f"{name}.h"]
        items.append((Item(name, made.files, [sketch.sample() for _ in range(2)]), graph))
    check(items)


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


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_steps_of_a_1d_network(dtype: DType) -> None:
    """Bands of columns: the application feeds one step of the sequence, with all of its channels, or more."""
    items = []
    for seed in (1, 2, 5, 8, 11, 14):
        chain = random_chain(seed, dtype, extents=FLAT)
        graph, name = chain.graph(), f"step{seed}"
        made = compiled(graph, name, optimize=("balanced", "ram")[seed % 2])
        assert f"#define {name.upper()}_ROWS {FLAT[1]}" in made.files[f"{name}.h"]
        assert f"#define {name.upper()}_ROW_ELEMENTS 4" in made.files[f"{name}.h"]
        items.append((Item(name, made.files, [chain.sketch.sample() for _ in range(2)]), graph))
    short = Chain(3, dtype, extents=(1, 7))
    short.add("conv", 8)
    for name, chain in (("short", short), ("sound", sound(dtype))):
        made = compiled(graph := chain.graph(), name)
        items.append((Item(name, made.files, [chain.sketch.sample() for _ in range(2)]), graph))
    assert made.plan.arena_bytes < chain.sketch.inputs[0].bytes * 2 / 3
    check(items, exact=dtype is DType.INT8)


def sound(dtype: DType) -> Chain:
    """Samples of one channel, quantised one by one, and a mean over all of them at the end."""
    chain = Chain(5, DType.FLOAT32, extents=(1, 600), channels=1)
    chain.dtype = dtype
    if dtype is DType.INT8:
        chain.end = chain.sketch.add(Quantize(DType.INT8, Quant.per_tensor(0.03, 3)), chain.end)
    chain._weighted(Conv((1, 4), pads=(0, 7, 0, 8)), (8, 1, 16, 1), 0)
    chain.add("pool", 8)
    chain.add("conv", 4)
    mean = AveragePool((1, chain.end.shape[2]), (1, 1), pads=(0, 0, 0, 0))
    chain.end = chain.sketch.add(mean, chain.end, quant=chain.end.quant)
    return chain


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


def rotated() -> Graph:
    """Columns become rows, of which every second is then part of a row."""
    sketch = Sketch(1)
    x = sketch.input((1, 12, 12, 3), DType.FLOAT32)
    y = sketch.add(Reshape((1, 6, 24, 3)), sketch.add(Transpose((0, 2, 1, 3)), x))
    return sketch.graph(sketch.add(Conv(), y, sketch.real(4, 3, 3, 3), sketch.real(4)))


def a_sum_first() -> Graph:
    sketch = Sketch(1)
    x = sketch.input((1, 12, 12, 3), DType.FLOAT32)
    return sketch.graph(sketch.add(Reduce("sum", (1,)), x))


def one_position() -> Graph:
    chain = Chain(1, extents=(1, 1))
    chain.add("conv", 8)
    return chain.graph()


@pytest.mark.parametrize(
    "graph,message",
    [
        (two_inputs, "the model has 2 inputs"),
        (rotated, "Transpose 'Transpose0' needs all of it"),
        (a_sum_first, r"'in0' \(1x12x12x3\): Reduce 'Reduce0' needs all of it"),
        (one_position, "cannot be computed in bands of rows"),
    ],
)
def test_models_that_need_the_whole_input(graph: Callable[[], Graph], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as raised:
        compiled(graph())
    assert raised.value.hint


def test_a_conversion_is_not_blamed_for_the_layer_after_it() -> None:
    """A streaming model: its few rows are converted and then joined with those of earlier runs."""
    with pytest.raises(UnsupportedError, match=r"io rows: Concat 'conv1\.joined'"):
        compile_model(WAKE_WORD, Options(io="rows"))


@pytest.mark.parametrize("optimize, saves", [("balanced", False), ("ram", True)])
def test_a_note_if_rows_save_no_memory(optimize: str, saves: bool, models_folder: Path) -> None:
    """KWS: its input is small beside the tensor after the first layer, unless that is in bands, too."""
    options = Options(target="cortex-m4", io="rows", optimize=optimize)
    notes = compile_model(models_folder / "mlperf_kws_int8.tflite", options).graph.notes
    assert any("`io: rows` saves no RAM in this model" in note for note in notes) is not saves


def test_vww_needs_less_than_its_image(models_folder: Path) -> None:
    model = models_folder / "mlperf_vww_int8.tflite"
    found = compile_model(model, Options(target="cortex-m4", io="rows"))
    assert found.plan.arena_bytes < 19_000 < 96 * 96 * 3
    assert found.summary["rows"] == {"count": 96, "row_bytes": 288}


MAIN = """
#include <string.h>
#include "fed.h"
#include "whole.h"

static int8_t image[FED_ROWS][FED_ROW_ELEMENTS];

static int differ(void)
{
	memcpy(whole_input(), image, sizeof(image));
	return whole_run() != 0 || memcmp(fed_output(), whole_output(), FED_OUTPUT_BYTES) != 0;
}

int main(void)
{
	for (unsigned int i = 0; i < sizeof(image); i++) {
		image[i / FED_ROW_ELEMENTS][i % FED_ROW_ELEMENTS] = (int8_t)(i * 41u % 251u);
	}
	if (fed_feed_rows(image[0], 1) != TINYML_EINVAL || fed_begin() != 0 ||
		fed_feed_rows(image[0], 5) != FED_ROWS - 5 || fed_begin() != 0) {
		return 1;
	}
	for (int row = 0, count = 1; row < FED_ROWS; row += count, count = count % 3 + 1) {
		count = count < FED_ROWS - row ? count : FED_ROWS - row;
		if (fed_feed_rows(image[row], (size_t)(FED_ROWS - row) + 1u) != TINYML_EINVAL ||
			fed_feed_rows(image[row], (size_t)-1) != TINYML_EINVAL ||
			fed_feed_rows(NULL, 1) != TINYML_EINVAL || fed_feed_rows(image[row], 0) != FED_ROWS - row ||
			fed_feed_rows(image[row], (size_t)count) != FED_ROWS - row - count) {
			return 2;
		}
	}
	if (differ()) {
		return 3;
	}
	image[7][1] ^= 5;
	return fed_run(&image[0][0]) != 0 || differ() ? 4 : 0;
}
"""


def test_the_functions_that_an_application_calls(tmp_path: Path) -> None:
    chain = one_conv()
    chain.add("depthwise", 0)
    chain.add("pool", 0)
    files = {"main.c": MAIN}
    sources: set[str] = set()
    for name, io in (("fed", "rows"), ("whole", "arena")):
        made = compile_graph(
            chain.graph(), name, Provenance("chain", "0" * 64, ""), Options(target="host", io=io)
        )
        files |= made.files
        sources |= set(made.summary["sources"]["runtime"])
        long = [line for line in files[f"{name}.c"].splitlines() if len(line.expandtabs(8)) > 100]
        assert not long
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = ("-std=c11", "-O1", *WARNINGS, *SANITIZERS)
    mine = [tmp_path / name for name in files if name.endswith(".c")]
    parts = [*mine, *(RUNTIME_C / name for name in sorted(sources))]
    subprocess.run([build_program(tmp_path / "program", parts, flags, (RUNTIME_INCLUDE,))], check=True)


def test_a_front_end_computes_the_rows_itself() -> None:
    with pytest.raises(ConfigError, match="computes the rows of the input itself"):
        Options(frontend=from_mapping("micro", "test"), io="rows")


def test_slots_take_no_rows(tmp_path: Path) -> None:
    slots = (Slot("a", 0x1000),)
    with pytest.raises(ConfigError, match="cannot take its input in rows"):
        pack_compiled(compiled(one_conv().graph(), target="cortex-m4"), slots, parse_version("1"))


def test_from_tinyml_yaml_to_cmake(tmp_path: Path) -> None:
    path = tmp_path / "tinyml.yaml"
    path.write_text("models:\n  - name: a\n    file: a.onnx\n    io: rows,int8\n")
    (entry,) = manifest.parse(path.read_text(), "x").models
    assert entry.io == Io(rows=True, int8=True)
    assert "[=[IO]=] [=[rows,int8]=]" in cmake.calls(path)
    with pytest.raises(ConfigError, match="'io' cannot be 'columns'"):
        manifest.parse(path.read_text().replace("rows,int8", "columns"), "x")


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7", "cortex-m55"])
@pytest.mark.parametrize(
    "columns,kernel", [(8, "tinyml_quantize_even("), (48, "tinyml_quantize_even_f32_s8(")]
)
def test_rows_with_fewer_elements_than_a_kernel_supports(target: str, columns: int, kernel: str) -> None:
    """Quantising by fours takes 32 elements or more: short rows get the kernel without that limit."""
    sketch = Sketch(5)
    bytes_in = Quant.per_tensor(0.02, 3)
    x = sketch.input((1, 24, columns, 1), DType.FLOAT32)
    x = sketch.add(Quantize(DType.INT8, bytes_in), x)
    y = sketch.add(AveragePool(kernel=(3, 3), strides=(1, 1)), x)
    made = compiled(sketch.graph(y), target=target)
    assert kernel in made.files["fed.c"]


LIBRARY = "io rows: arm_convolve_s8 of CMSIS-NN, the kernel of Conv 'Conv0', computes all rows at once"


@pytest.mark.parametrize("optimize", ["ram", "balanced"])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_a_library_that_computes_whole_images_is_not_in_bands(target: str, optimize: str) -> None:
    """``ram`` returned to such a kernel after chains were made: its C did not compile or was not linked."""
    chain = Chain(3, extents=(24, 9))
    chain._weighted(Conv(pads=(1, 1, 1, 1)), (8, 3, 3, 4), 0)
    options = Options(target=target, io="rows", kernels="cmsis-nn", optimize=optimize)
    origin = Provenance("chain", "0" * 64, "")
    if optimize == "balanced":
        with pytest.raises(UnsupportedError, match=LIBRARY) as found:
            compile_graph(chain.graph(), "fed", origin, options)
        assert "kernels: portable" in str(found.value)
        return
    made = compile_graph(chain.graph(), "fed", origin, options)
    (op,) = (chosen.layer.op for chosen in made.selected)
    assert isinstance(op, Banded)
    assert all(link.kernel.in_bands for link in op.links)
    assert "arm_" not in made.files["fed.c"]
