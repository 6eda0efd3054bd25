# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What emit/feed.py tells the templates: sizes of arrays, conversions as C, lines that fit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml.base.c import COLUMNS, TAB_COLUMNS
from tinyml.emit.feed import FeedCode, feed_code
from tinyml.features.feed import Feed, Real, Whole, attach
from tinyml.features.settings import from_mapping
from tinyml.harness.program_build import RUNTIME_INCLUDE, WARNINGS
from tinyml.ir import Array, DType, Quant
from tinyml.ops.elementwise.unary import Unary

SIZES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "float": 4}
MICRO = {"kind": "micro", "step_ms": 10}
VIBRATION = {"kind": "spectral", "axes": 3, "bands": [0, 100, 500], "window_samples": 64, "step_samples": 20}
CASES: dict[str, tuple[dict[str, object], DType, Quant | None, int]] = {
    "published": (MICRO, DType.INT8, Quant.per_tensor(26 / 255.5, -128), 3),
    "integer": (MICRO, DType.INT8, Quant.per_tensor(0.2, 7), 2),
    "bytes": (MICRO, DType.UINT8, Quant.per_tensor(0.3, 0), 1),
    "wide": (MICRO, DType.INT16, Quant.per_tensor(0.01, 0), 2),
    "real": (MICRO, DType.FLOAT32, None, 4),
    "doubled": ({**MICRO, "scale": 0.5}, DType.FLOAT64, None, 1),
    "quantised": (VIBRATION, DType.INT8, Quant.per_tensor(0.05, -3), 1),
    "plain": (VIBRATION, DType.FLOAT32, None, 2),
}


def made(name: str) -> Feed:
    settings, dtype, quant, rows = CASES[name]
    end = from_mapping(settings, "test")
    sketch = Sketch()
    x = sketch.input((1, rows, end.settings.width), dtype, quant)
    return attach(end, sketch.graph(sketch.build.add1(Unary("abs"), [x])))


def coded(name: str) -> FeedCode:
    return feed_code(name, made(name))


def test_a_rate_keeps_all_of_its_digits() -> None:
    sketch = Sketch()
    x = sketch.input((1, 3), DType.FLOAT32)
    graph = sketch.graph(sketch.build.add1(Unary("abs"), [x]))
    for rate, text in ((16000, "16000"), (3333.333, "3333.333"), (1234567, "1234567"), (0.5, "0.5")):
        end = from_mapping({"kind": "normalize", "rate": rate}, "test")
        assert feed_code("m", attach(end, graph)).rate == text


@pytest.mark.parametrize("name", CASES)
def test_arrays_hold_what_passes_through_them(name: str) -> None:
    feed, code = made(name), coded(name)
    settings, itemsize = feed.frontend.settings, np.dtype(feed.tensor.dtype.numpy).itemsize
    arrays = {m.name.removeprefix(f"{name}_"): m for m in code.memory}
    for array in code.memory:
        if array.type in SIZES:
            assert array.bytes == array.length * SIZES[array.type], array.name
    assert arrays["samples"].length == settings.window * settings.axes
    assert arrays["row"].length == settings.width
    assert ("rows" in arrays) == (feed.rows > 1) == (not code.in_place)
    assert [(w.name.removeprefix(f"{name}_"), w.frames, w.step) for w in code.windows] == [
        ("window", settings.window, settings.step),
        *([("row_window", feed.rows, feed.stride)] if feed.rows > 1 else []),
    ]
    assert code.windows[0].frame_bytes == settings.axes * np.dtype(feed.frontend.of.sample).itemsize
    if feed.rows > 1:
        assert arrays["rows"].length == feed.rows * settings.width
        assert arrays["rows"].bytes == arrays["rows"].length * itemsize
        assert code.windows[1].frame_bytes == settings.width * itemsize
    assert code.ram_bytes == sum(m.bytes for m in code.memory) + 24 * len(code.windows)
    assert code.flash_bytes == sum(table.values.nbytes for table in code.tables)


@pytest.mark.parametrize("name", CASES)
def test_statements_stay_within_the_columns_of_their_place(name: str) -> None:
    code = coded(name)
    lines = [*((1, line) for line in code.statement), *((2, line) for line in code.conversion)]
    for depth, line in lines:
        text = str(line)
        assert text.startswith("\t" * depth), text
        assert len(text.expandtabs(TAB_COLUMNS)) <= COLUMNS, text
    for block, depth in ((code.statement, 1), (code.conversion, 2)):
        assert not str(block[0])[depth:].startswith("\t")


def values(code: FeedCode) -> Array:
    """Features of all sizes, with those around which roundings and limits change."""
    if code.row == "uint16_t":
        return np.unique(np.r_[0:700, 1000:65536:97, 65535]).astype(np.uint16)
    return np.r_[np.linspace(-9, 9, 400), 0.025, 0.075, -0.125, 1e4, -1e4].astype(np.float32)


def test_conversions_in_c_are_those_in_numpy(tmp_path: Path) -> None:
    codes = {name: coded(name) for name in CASES}
    headers = dict.fromkeys(h for code in codes.values() for h in code.headers if h.startswith("<tinyml/"))
    program = ["#include <stdio.h>", "#include <stdint.h>", *(f"#include {h}" for h in headers)]
    for name, code in codes.items():
        text = ", ".join(float(x).hex() if code.row == "float" else str(x) for x in values(code))
        program += [
            f"static const {code.row} {name}_row[] = {{{text}}};",
            f"static void {name}(void) {{ static {code.feature} features[{len(values(code))}];",
            f"for (unsigned i = 0; i < {len(values(code))}u; i++) {{",
            *map(str, code.conversion),
            f'printf("%s%.17g", i ? "," : "\\"{name}\\":[", (double)features[i]); }} printf("]"); }}',
        ]
    calls = ' printf(","); '.join(f"{name}();" for name in codes)
    program.append(f'int main(void) {{ printf("{{"); {calls} printf("}}"); return 0; }}')
    source, image = tmp_path / "convert.c", tmp_path / "convert"
    source.write_text("\n".join(program))
    flags = ["-std=gnu11", "-O1", f"-I{RUNTIME_INCLUDE}"]
    subprocess.run(["gcc", *WARNINGS, *flags, str(source), "-o", str(image), "-lm"], check=True)
    found = json.loads(subprocess.run([str(image)], capture_output=True, check=True).stdout)
    for name, code in codes.items():
        feed = made(name)
        wanted = feed.conversion.apply(values(code), feed.tensor.dtype)
        np.testing.assert_array_equal(np.array(found[name]), wanted.astype(np.float64), name)


def test_the_cases_have_every_conversion() -> None:
    kinds = {name: made(name).conversion for name in CASES}
    assert [name for name, how in kinds.items() if isinstance(how, Whole)] == [*CASES][:4]
    real = {name: how for name, how in kinds.items() if isinstance(how, Real)}
    assert [name for name, how in real.items() if how.quantized] == ["quantised"]
    assert {how.scale == 1.0 for how in real.values()} == {True, False}
