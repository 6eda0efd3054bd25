# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""<tinyml/maths.h>: its accuracy against libm in double, and that it makes libm unnecessary."""

from __future__ import annotations

import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, WARNINGS
from tinyml.harness.tools import host_compiler
from tinyml.ops.framework import maths
from tinyml.pipeline import Options, compile_model

PROGRAM = Path(__file__).parents[1] / "support" / "maths_accuracy.c"
STEP = 9973  # every so many floats; 1 takes all of them and an hour
LARGEST_ERROR = 2.0
ALL = {f"{name}{suffix}" for name in (*maths.EXACT, *maths.ROUNDED) for suffix in ("", "f")}


@pytest.mark.parametrize("contract", ["off", "fast"])
def test_largest_error_in_units_of_the_last_place(tmp_path: Path, contract: str) -> None:
    """With and without fused multiply-add, as the host has it: cores differ in that."""
    image = tmp_path / "accuracy"
    flags = ["-std=gnu11", "-O2", f"-ffp-contract={contract}", f"-I{RUNTIME_INCLUDE}"]
    subprocess.run(
        [host_compiler().path, *flags, *WARNINGS, PROGRAM, "-lm", "-o", image], check=True, timeout=120
    )
    shown = subprocess.run([image, str(STEP)], check=True, capture_output=True, text=True, timeout=600)
    worst = {line.split()[0]: float(line.split()[1]) for line in shown.stdout.splitlines()}
    assert set(worst) == (maths.EXACT | maths.ROUNDED | {"sqrt"}) - {"fmin", "fmax"}
    assert max(worst.values()) <= LARGEST_ERROR, shown.stdout
    assert max(worst[name] for name in (*maths.EXACT - {"fmin", "fmax"}, "sqrt")) <= 0.5


def test_no_kernel_refers_to_libm() -> None:
    sources = [path for path in sorted(RUNTIME_C.rglob("*_f32*.c")) if "sparse" not in path.name]
    sources.append(RUNTIME_C / "recurrent/recurrent_activations.c")
    units = [Unit(path, "", ("-std=c11", "-O1"), (RUNTIME_INCLUDE, RUNTIME_C)) for path in sources]
    objects = compile_all(host_compiler(), units)
    done = subprocess.run(["nm", "-uA", *objects], check=True, capture_output=True, text=True, timeout=60)
    symbols = [line.rsplit(maxsplit=1)[-1] for line in done.stdout.splitlines()]
    owners = [Path(line.partition(":")[0]) for line in done.stdout.splitlines()]
    assert set(owners) <= set(objects)
    for path, built in zip(sources, objects, strict=True):
        wanted = {symbol for symbol, owner in zip(symbols, owners, strict=True) if owner == built}
        assert not wanted & {*ALL, "sqrt", "sqrtf"}, path
    assert any(name.startswith("tinyml_") for name in symbols), "kernels call other functions of ours"


def unary_model(folder: Path, op_type: str, kind: int) -> Path:
    x, y = (helper.make_tensor_value_info(name, kind, [8]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", [x], [y])
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.mark.parametrize("op_type", ["Softmax", "Tanh", "Erf", "Sqrt", "Floor"])
def test_float_models_need_no_full_c_library(tmp_path: Path, op_type: str) -> None:
    model = unary_model(tmp_path, op_type, TensorProto.FLOAT)
    compiled = compile_model(model, Options(name="m", target="cortex-m4"))
    assert compiled.summary["libm"] == []
    assert "CONFIG_MINIMAL_LIBC" not in compiled.files["m.c"]
    assert "tinyml_" in compiled.files["m.c"].split("static void m_", 1)[1]


def test_a_model_of_doubles_names_itself_the_function_and_the_setting(tmp_path: Path) -> None:
    model = unary_model(tmp_path, "Tanh", TensorProto.DOUBLE)
    compiled = compile_model(model, Options(name="gyro", target="host"))
    assert compiled.summary["libm"] == ["tanh"]
    (line,) = [line for line in compiled.files["gyro.c"].splitlines() if "LIBC=y" in line]
    assert line == (
        '#error "gyro calls tanh() for double: set CONFIG_REQUIRES_FULL_LIBC=y, or make the model float32"'
    )


def test_rounding_of_doubles_needs_no_full_c_library(tmp_path: Path) -> None:
    model = unary_model(tmp_path, "Round", TensorProto.DOUBLE)
    compiled = compile_model(model, Options(name="m", target="host"))
    assert compiled.summary["libm"] == []
    assert "tinyml_rint(" in compiled.files["m.c"]
