# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The generated C: kept in the repository, up to date, reproducible and free of warnings."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.interpret import interpret
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.base.errors import UnsupportedError
from tinyml.cores.targets import find_target
from tinyml.ir import DType, Layer, Tensor, TensorType
from tinyml.ops.concat import Concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.framework.kernel import Sheet, Tables
from tinyml.ops.reshape import Reshape
from tinyml.ops.softmax.softmax import Softmax
from tinyml.pipeline import Options, compile_built, compile_model

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "samples" / "digits" / "model.onnx"
RUNTIME = ROOT / "plugin" / "tinyml" / "runtime" / "include"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wpedantic", "-Werror"]


def test_kept_c_is_current() -> None:
    """For an intended change: run python tests/golden/regenerate.py, review the diff, commit it."""
    script = ROOT / "tests" / "golden" / "regenerate.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\nrun: python tests/golden/regenerate.py"


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    """The text does not depend on the order of sets, on addresses or on dates."""
    texts = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "tinyml", "compile", MODEL, "-o", folder, "--kernels", "portable"],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "plugin"), "PATH": "/usr/bin:/bin"},
        )
        texts.append({path.name: path.read_text() for path in sorted(folder.iterdir())})
    assert texts[0] == texts[1]


@pytest.mark.parametrize("io", ["arena", "caller"])
def test_no_warnings(io: str, tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    files = compile_model(MODEL, Options("digits", "host", "portable", io=io)).files
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    source = tmp_path / "digits.c"
    done = subprocess.run(
        [compiler, *STRICT, f"-I{RUNTIME}", "-c", source, "-o", tmp_path / "digits.o"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_callers_buffers() -> None:
    """The run function takes the buffers, and the description contains no addresses."""
    files = compile_model(MODEL, Options("digits", "host", "portable", io="caller")).files
    assert "int digits_run(const float *input, float *output);" in files["digits.h"]
    assert "digits_input(" not in files["digits.h"]
    assert ".data = NULL" in files["digits.c"]
    assert ".run =" not in files["digits.c"]


def test_lines_fit() -> None:
    for text in compile_model(MODEL, Options("digits", "host", "portable")).files.values():
        assert max(len(line.expandtabs(8)) for line in text.splitlines()) <= 100


MAIN = """
#include <stdio.h>
#include "digits.h"

int main(void)
{
	static float in[DIGITS_INPUT_ELEMENTS];
	static float out[DIGITS_OUTPUT_ELEMENTS];
	for (int i = 0; i < DIGITS_INPUT_ELEMENTS; i++) {
		in[i] = (float)(i * 7 % 17);
	}
	for (int run = 0; run < 2; run++) {
		digits_run(in, out);
		for (int i = 0; i < DIGITS_OUTPUT_ELEMENTS; i++) {
			printf("%.9g ", (double)out[i]);
		}
	}
	return 0;
}
"""


def test_callers_buffers_run(tmp_path: Path) -> None:
    """Two runs on the same input agree: the run must not write to it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    compiled = compile_model(MODEL, Options("digits", "host", "portable", io="caller"))
    for name, text in {**compiled.files, "main.c": MAIN}.items():
        (tmp_path / name).write_text(text)
    sources = [RUNTIME.parent / name for name in compiled.summary["sources"]["runtime"]]
    program = tmp_path / "program"
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [compiler, *flags, f"-I{RUNTIME}", *sources, tmp_path / "digits.c", tmp_path / "main.c"]
    subprocess.run([*command, "-lm", "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    x = (np.arange(64, dtype=np.float32) * 7 % 17).reshape(compiled.graph.tensors["image"].shape)
    expected = next(iter(interpret(compiled.graph, {"image": x}).values())).reshape(-1)
    assert printed[:10] == printed[10:]
    np.testing.assert_array_equal(np.array(printed[:10], np.float32), expected)


def test_equal_tables_are_printed_once() -> None:
    """Under the name of the first; of the rest not even the name is left."""
    model = Tables()
    layer = Layer("copy", Reshape((4,)), (Tensor("x", (4,), DType.INT8),), (Tensor("y", (4,), DType.INT8),))
    first = Sheet(layer, find_target("host"), "m_a1", model_tables=model)
    second = Sheet(layer, find_target("host"), "m_a2", model_tables=model)
    values = np.arange(4, dtype=np.int8)
    assert first.table("weights", values) == "m_a1_weights"
    assert second.table("weights", values.reshape(2, 2)) == "m_a1_weights"
    assert second.table("weights", values + 1) == "m_a1_weights", "a suffix names one table of a layer"
    assert second.table("bias", values.astype(np.int16)) == "m_a2_bias"
    assert [table.name for table in model] == ["m_a1_weights", "m_a2_bias"]
    assert [table.name for table in second.tables] == ["m_a2_bias"]


def test_a_tensor_may_be_called_like_the_shape_of_another() -> None:
    sketch = Sketch()
    x, y = (sketch.build.tensor(name, TensorType((3,), DType.FLOAT32)) for name in ("x", "x_shape"))
    sketch.inputs = [x, y]
    outputs = [sketch.add(Binary("add"), x, y), sketch.add(Binary("sub"), x, y)]
    compiled = compile_built(replace(sketch.graph(*outputs), name="named"), Options(target="host"))
    outcome = run_batch(
        [Item("named", compiled.files, [{n: np.ones(3, np.float32) for n in (x.name, y.name)}])]
    )
    assert not outcome["named"].failure
    assert [value.tolist() for value in outcome["named"].outputs[0].values()] == [[2, 2, 2], [0, 0, 0]]


@pytest.mark.parametrize("count", [255, 256])
def test_inputs_are_counted_in_a_byte(count: int) -> None:
    sketch = Sketch()
    inputs = [sketch.input((1,), DType.FLOAT32) for _ in range(count)]
    graph = sketch.graph(sketch.add(Concat(0), *inputs))
    if count == 255:
        assert ".input_count = 255," in compile_built(graph, Options(target="host")).files[f"{graph.name}.c"]
        return
    with pytest.raises(UnsupportedError, match="has 256 inputs; at most 255 are supported"):
        compile_built(graph, Options(target="host"))


def test_equal_layers_are_all_computed() -> None:
    """GCC 12 removed both calls: it took the function that it had made of them for one without effects."""
    sketch = Sketch()
    mask, x = sketch.input((16,), DType.BOOL), sketch.input((2, 16), DType.FLOAT32)
    low = sketch.constant(-3)
    first = sketch.add(Where(), mask, x, low)
    graph = sketch.graph(sketch.add(Where(), mask, sketch.add(Softmax(-1), first), low))
    values = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    sample = {mask.name: np.arange(16) % 3 > 0, x.name: values}
    files = compile_built(graph, Options("m", "host")).files
    (found,) = harness.run_files(files, "host", [sample]).outputs
    expected = interpret(graph, sample)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
