# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sheet counts what a kernel writes on it, and includes what its numbers need."""

from __future__ import annotations

import math

import pytest

from tests.support.sketch import Sketch
from tinyml.cores.targets import find_target
from tinyml.ir import DType, Layer, Tensor
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.reshape import Reshape
from tinyml.pipeline import Options, compile_built


def sheet() -> Sheet:
    x, y = (Tensor(name, (8,), DType.INT8) for name in "xy")
    return Sheet(Layer("copy", Reshape((8,)), (x,), (y,)), find_target("host"), "m_copy")


def test_loops_multiply_what_is_in_them() -> None:
    page = sheet()
    with page.loop("i", 8):
        page.line("int32_t sum = 0;")
        with page.loop("k", 5, start=1, step=2):
            page.line("sum += in[i * 4 + k] * w[k];")
        page.line("out[i] = tinyml_clamp(sum, -128, 127);")
    page.line("memcpy(z, out, 8);")
    found = page.tally
    assert found.executed["tinyml_clamp()"] == 8
    assert found.executed["iteration"] == 8 + 16
    assert found.executed["index"] == 16 * 2 + 8
    assert found.executed["copied byte"] == 8
    assert found.written["index"] == 3
    assert found.inner == [2]
    assert page.lines[2] == "\t\tfor (int32_t k = 1; k < 5; k += 2) {"


def test_a_long_statement_counts_as_one() -> None:
    page = sheet()
    page.line(f"sum = {' + '.join(f'a_long_name_of_a_term[{i}]' for i in range(20))};")
    assert len(page.lines) > 1
    assert (page.tally.written["add"], page.tally.written["index"]) == (19, 20)


def test_blocks_that_are_executed_now_and_then() -> None:
    page = sheet()
    with page.block("if (band < 3) {", times=3), page.loop("i", 4):
        page.line("out[i] = 0;")
    with page.block("while (more) {"):
        page.line("out[0] = 1;")
    with page.loop("i", "count"):
        page.line("out[i] = 2;")
    assert page.tally.executed["index"] == 12 + 1 + 1
    assert page.tally.inner == [4]


def test_the_shape_of_loops() -> None:
    """What a compiler may do several times at once, once the function is inlined."""
    page = sheet()
    with page.nested([("i", 32), ("alone", 1)]):
        page.line("out[i] = in[i];")
    with page.loop("i", 3):
        with page.block("if (in[i] < 0) {"):
            page.line("continue;")
        with page.loop("j", 24):
            page.line("out[i] = in[i];")
    with page.loop("never", 0):
        page.line("out[0] = 0;")
    page.tally.in_place = True
    assert (page.tally.inner, page.tally.shape) == ([32, 24], "by 8 in place")
    with page.loop("i", 25):
        page.line("out[i] = 0;")
    assert page.tally.shape == "by 1 in place"


def test_every_layer_of_a_model_is_counted() -> None:
    sketch = Sketch()
    x = sketch.input((64,), DType.FLOAT32)
    model = compile_built(sketch.graph(sketch.add(Unary("exp"), x)), Options())
    (tally,) = model.tallies.values()
    assert tally.executed["iteration"] == 64
    assert tally.body in model.files[f"{model.name}.c"]


@pytest.mark.parametrize(
    "value,dtype,text",
    [
        (math.inf, DType.FLOAT32, "INFINITY"),
        (-math.inf, DType.FLOAT64, "-INFINITY"),
        (math.nan, DType.FLOAT32, "NAN"),
        (1e300, DType.FLOAT32, "INFINITY"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_infinities_bring_their_header(value: float, dtype: DType, text: str) -> None:
    page = sheet()
    assert page.number(value, dtype) == text
    assert page.headers == ["<math.h>"]


def test_other_numbers_need_none() -> None:
    page = sheet()
    assert [page.number(0.5), page.number(1e300, DType.FLOAT64), page.number(-7, DType.INT32)] == [
        "0.5f",
        "1.0e300",
        "-7",
    ]
    assert page.headers == []
