# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a model on an Arm Ethos-U: the split, what the NPU is given, the C, and errors.

No NPU can be emulated here. The split is checked in numpy: all parts together compute what the whole model
computes. The C is compiled and run with a driver that answers as the NPU would.
"""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.support.npu_models import SHAPE, conv, in_between, one_operator, saved, value
from tests.support.npu_oracle import Npu
from tests.support.npu_u85 import NpuU85
from tests.support.tflite_writer import Call, Value
from tinyml import importers
from tinyml.base.errors import TinymlError
from tinyml.importers.tflite_file import parse
from tinyml.ir import Array, Node, Quant
from tinyml.ir.interpreter import interpret
from tinyml.npu import vela
from tinyml.npu.as_tflite import written
from tinyml.npu.operator import ALIGNMENT, EthosU
from tinyml.passes import PASSES, without_tables
from tinyml.pipeline import Compiled, Options, compile_model, optimize
from tinyml.projects import cmake, manifest
from tinyml.projects.platformio.boards import Board
from tinyml.projects.platformio.project import read_models
from tinyml.verbs.cli import main

NPU = "ethos-u55-128"
U85 = "ethos-u85-256"
FLOAT = Path(__file__).parents[2] / "samples" / "digits" / "model_float.onnx"
HAS_VELA = importlib.util.find_spec("ethosu") is not None
needs_vela = pytest.mark.skipif(not HAS_VELA, reason="ethos-u-vela is not installed")


def parts_of(compiled: Compiled) -> list[EthosU]:
    return [node.op for node in compiled.graph.nodes if isinstance(node.op, EthosU)]


@needs_vela
@pytest.mark.parametrize("npu", [NPU, U85])
def test_cpu_and_npu_parts_compute_what_the_whole_computes(tmp_path: Path, npu: str) -> None:
    path = in_between(tmp_path)
    split, whole = compile_model(path, Options(npu=npu)), compile_model(path, Options())
    assert [node.op.kind for node in split.graph.nodes] == ["EthosU", "ReverseSequence", "EthosU"]
    x = np.random.default_rng(3).integers(-128, 128, SHAPE).astype(np.int8)
    (ours,), (theirs,) = (interpret(c.graph, [{"x": x}]) for c in (split, whole))
    for name in ("y", "a"):
        assert np.array_equal(ours[name], theirs[name])
    assert len(np.unique(ours["y"])) > 20


@needs_vela
def test_the_report_has_velas_estimate_and_its_reasons(tmp_path: Path) -> None:
    compiled = compile_model(in_between(tmp_path), Options(npu=NPU))
    notes = "\n".join(compiled.graph.notes)
    assert f"{NPU} computes 2 of 3 layers in 2 parts" in notes
    assert notes.endswith("; on the CPU: ReverseSequence")
    facts = compiled.summary["npu"]
    assert [part["operators"] for part in facts] == [["CONV_2D"], ["CONV_2D"]]
    assert all(part["cycles_estimated"] > 0 for part in facts)


@needs_vela
@pytest.mark.parametrize("npu", [NPU, "ethos-u65-256", U85])
def test_streams_are_whole_and_aligned(tmp_path: Path, npu: str) -> None:
    compiled = compile_model(saved(tmp_path, conv("x", "y", 1)), Options(npu=npu))
    (part,) = parts_of(compiled)
    words = struct.unpack(f"<{len(part.commands) // 4}I", part.commands)
    assert part.commands[:4] == b"COP1"  # what the driver reads
    assert words[7] & 0xFF == 2  # the commands follow, 32 bytes after the start
    assert (words[7] >> 16) | (words[7] >> 8 & 0xFF) << 16 == len(words) - 8
    assert words[-1] & 0x3FF == 0  # the last command stops the NPU
    assert len(part.weights) % ALIGNMENT == 0
    tables = compiled.files["model_weights.h"]
    assert tables.count("__attribute__((aligned(16)))") == 2
    places = [compiled.plan.places[name].offset for name in ("x", "y")]
    assert all(offset % ALIGNMENT == 0 for offset in (*places, *compiled.plan.scratch.values()))


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(TinymlError) as caught:
        compile_model(path, Options(**{"npu": NPU, **options}))  # type: ignore[arg-type]
    return str(caught.value)


@needs_vela
def test_a_model_without_anything_for_the_npu(tmp_path: Path) -> None:
    """One layer that is not given to Vela, and one that Vela refuses: a mean over the channels."""
    axis = Value.constant("axis", np.array([2], np.int32))
    path = saved(tmp_path, ([axis], Call("REVERSE_V2", ["x", "axis"], ["y"])))
    assert f"{NPU} can compute nothing of model (layers: Slice)" in refusal(path)
    axes, y = Value.constant("axes", np.array([3], np.int32)), value("y", shape=(1, 8, 8, 1))
    call = Call("MEAN", ["x", "axes"], ["y"], "ReducerOptions", {"KeepDims": True})
    said = refusal(saved(tmp_path, ([axes, y], call)))
    assert f"{NPU} can compute nothing of model (layers: Reduce)" in said
    assert "Vela leaves MEAN 'y' to the CPU: Unsupported depth-reduction" in said


@needs_vela
def test_a_float_model(tmp_path: Path) -> None:
    values = [value("x", "float32"), value("y", "float32")]
    said = refusal(saved(tmp_path, (values, Call("RELU", ["x"], ["y"]))))
    assert f"is a float model, and {NPU} computes on int8" in said


def test_an_accelerator_that_does_not_exist(tmp_path: Path) -> None:
    said = refusal(saved(tmp_path, conv("x", "y", 1)), npu="ethos-u55-129")
    assert "there is no accelerator 'ethos-u55-129'; did you mean ethos-u55-128?" in said
    assert "ethos-u85-2048" in said


def test_without_vela(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = refusal(saved(tmp_path, conv("x", "y", 1)))
    assert "requires Arm's compiler Vela, which is not installed" in said
    assert "pip install 'west-tinyml[npu]'" in said


@needs_vela
def test_vela_that_fails_is_an_error_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vela, "system", lambda name: "No_Such_System")
    said = refusal(saved(tmp_path, conv("x", "y", 1)))
    assert "Vela could not compile the model" in said
    assert "No_Such_System" in said


@needs_vela
def test_a_file_that_vela_has_compiled(tmp_path: Path) -> None:
    path = saved(tmp_path, conv("x", "y", 1))
    path.write_bytes(vela.compile_part(path.read_bytes(), vela.Settings(NPU)).model)
    assert "the file was compiled by Vela" in refusal(path, npu="")


def test_the_key_of_tinyml_yaml(tmp_path: Path) -> None:
    file = tmp_path / "tinyml.yaml"
    file.write_text("models: [{name: kws, file: kws.tflite, npu: ethos-u55-128}]\n")
    assert manifest.load(file).models[0].as_yaml()["npu"] == NPU
    assert "[=[NPU]=] [=[ethos-u55-128]=]" in cmake.calls(file)
    file.write_text("models: [{name: kws, file: kws.tflite, npu: u55}]\n")
    with pytest.raises(TinymlError, match="there is no accelerator 'u55'"):
        manifest.load(file)


def test_the_option_of_platformio(tmp_path: Path) -> None:
    saved(tmp_path, conv("x", "y", 1))
    given = {"custom_tinyml_npu": NPU}
    (model,) = read_models(tmp_path, given, Board(), cmsis_nn=False)
    assert model.options.npu == NPU
    assert NPU in model.key("")
    with pytest.raises(TinymlError, match="there is no accelerator 'u55'"):
        read_models(tmp_path, {"custom_tinyml_npu": "u55"}, Board(), cmsis_nn=False)


@needs_vela
def test_running_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, conv("x", "y", 1))
    assert main(["run", str(path), "--npu", NPU, "--output", str(tmp_path / "y.npz")]) == 1
    said = capsys.readouterr().err
    assert f"is compiled for {NPU}, which host does not have" in said
    assert main(["compile", str(path), "--npu", "ethos-u99", "-o", str(tmp_path / "c")]) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.tflite"]


@needs_vela
def test_verify_computes_in_numpy_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A float model that is quantised first, so that CPU layers stand before and after the NPU's."""
    calibration = tmp_path / "data.npz"
    np.savez(calibration, image=np.random.default_rng(1).random((8, 1, 8, 8), np.float32))
    model = ["verify", str(FLOAT), "--quantize", str(calibration), "--npu", NPU, "--samples", "2"]
    assert main(model) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{NPU} computes 6 of 8 layers" in said
    assert f"nothing here emulates {NPU}. All operators are computed in numpy" in said
    assert "agrees on numpy with onnxruntime" in said
    assert main([*model, "--on", "qemu-cortex-m55"]) == 1
    assert "which qemu-cortex-m55 does not have" in capsys.readouterr().err


DRIVER = Path(__file__).parents[1] / "support" / "npu_driver.c"
RUNTIME = Path(vela.__file__).parents[1] / "runtime"
FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-g")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def started(folder: Path, x: Array) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(
        [folder / "npu"], cwd=folder, env=environment, input=x.tobytes(), stdout=subprocess.PIPE, check=False
    )


@needs_vela
def test_the_c_gives_the_npu_its_inputs_and_takes_its_outputs(tmp_path: Path) -> None:
    """The driver of this test writes down what the NPU would get, and answers what the NPU would."""
    compiled = compile_model(in_between(tmp_path), Options(npu=NPU, target="host"))
    for name, text in compiled.files.items():
        (tmp_path / name).write_text(text)
    sources = [tmp_path / "model.c", DRIVER, *(RUNTIME / f for f in compiled.summary["sources"]["runtime"])]
    places = [f"-I{RUNTIME / 'include'}", f"-I{tmp_path}", "-o", "npu"]
    command = ["gcc", *FLAGS, *SANITIZED, *map(str, sources), *places, "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    x = np.random.default_rng(3).integers(-128, 128, SHAPE).astype(np.int8)
    (values,), between = interpret(compiled.graph, [{"x": x}]), compiled.graph.nodes[1].outputs[0]
    (tmp_path / "answers").write_bytes(values["a"].tobytes() + values["y"].tobytes())
    done = started(tmp_path, x)
    assert done.stdout == values["y"].tobytes() + values["a"].tobytes()
    assert (tmp_path / "questions").read_bytes() == x.tobytes() + values[between].tobytes()
    (tmp_path / "answers").write_bytes(values["a"].tobytes())  # the second part fails
    done = started(tmp_path, x)
    assert (done.returncode, done.stdout) == (19, b"")


def on_npu(compiled: Compiled, node: Node, values: Mapping[str, Array]) -> tuple[dict[str, Array], list[str]]:
    """What the simulated NPU makes of a part's inputs, and the operators that it executed."""
    assert isinstance(node.op, EthosU)
    tensors = compiled.graph.tensors
    blocks = []
    for names, slots in ((node.inputs, node.op.input_slots), (node.outputs, node.op.output_slots)):
        ends = [slot.offset + tensors[name].bytes for name, slot in zip(names, slots, strict=True)]
        blocks.append(np.zeros(max(ends), np.uint8))
    for name, slot in zip(node.inputs, node.op.input_slots, strict=True):
        stored = np.frombuffer(values[name].tobytes(), np.uint8)
        blocks[0][slot.offset : slot.offset + len(stored)] = stored
    weights = np.frombuffer(node.op.weights, np.uint8).copy()
    regions = {0: weights, 1: np.zeros(max(node.op.scratch_bytes, 1), np.uint8), 3: blocks[0], 4: blocks[1]}
    npu = NpuU85(regions) if node.op.accelerator == U85 else Npu(regions)
    if node.op.accelerator == "ethos-u55-32":
        npu.channels = 4
    npu.run(node.op.commands)
    results = {}
    for name, slot in zip(node.outputs, node.op.output_slots, strict=True):
        stored = blocks[1][slot.offset : slot.offset + tensors[name].bytes]
        results[name] = stored.view(tensors[name].dtype.numpy).reshape(tensors[name].shape)
    return results, npu.executed


def same_on_npu(path: Path, npu: str = NPU) -> list[str]:
    """Every part computes the same in the simulated NPU as its operators do; what was executed."""
    compiled = compile_model(path, Options(npu=npu))
    rng = np.random.default_rng(5)
    inputs = {name: compiled.graph.tensors[name] for name in compiled.graph.inputs}
    x = {
        name: (rng.normal(size=t.shape) if t.dtype.is_float else rng.integers(-128, 128, t.shape)).astype(
            t.dtype.numpy
        )
        for name, t in inputs.items()
    }
    (values,) = interpret(compiled.graph, [x])
    executed = []
    for node in compiled.graph.nodes:
        if isinstance(node.op, EthosU):
            results, operators = on_npu(compiled, node, values)
            executed += operators
            for name, result in results.items():
                assert np.array_equal(result, values[name]), name
                assert result.size < 8 or len(np.unique(result)) > 1
    return executed


KINDS = (
    "depthwise",
    "max",
    "average",
    "add",
    "mul",
    "minimum",
    "relu",
    "softmax",
    "leaky",
    "logistic",
    "slice",
)


@needs_vela
@pytest.mark.tenth
@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_compute_what_the_operators_compute(tmp_path: Path, kind: str) -> None:
    assert same_on_npu(one_operator(tmp_path, kind))


@needs_vela
@pytest.mark.tenth
@pytest.mark.parametrize("kind", ["conv", "depthwise", "max", "average", "add", "mul", "minimum", "relu"])
def test_the_commands_of_an_ethos_u85(tmp_path: Path, kind: str) -> None:
    assert same_on_npu(one_operator(tmp_path, kind), U85)


@needs_vela
def test_blocks_of_weights_of_an_ethos_u85(models_folder: Path, tmp_path: Path) -> None:
    ends = [value("x", shape=(1, 8, 8, 24)), value("y", shape=(1, 8, 8, 40))]
    constants, call = conv("x", "y", 1, inputs=24, outputs=40)
    assert same_on_npu(saved(tmp_path, ([*ends, *constants], call)), U85) == ["conv"]
    assert same_on_npu(models_folder / "mlperf_ad_int8.tflite", U85) == ["conv"] * 10


@needs_vela
@pytest.mark.tenth
@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
def test_scales_of_an_ethos_u85(tmp_path: Path, kind: str) -> None:
    quants = {"x": Quant((0.0713,), (-7,)), "other": Quant((0.0291,), (12,)), "y": Quant((0.0377,), (4,))}
    values = [Value(name, (1, 16, 16, 8), "int8", quant) for name, quant in quants.items()]
    call = Call(kind.upper(), ["x", "other"], ["y"], f"{kind}Options")
    assert same_on_npu(saved(tmp_path, (values, call), inputs=("x", "other")), U85) == ["elementwise"]


@needs_vela
@pytest.mark.tenth
@pytest.mark.parametrize("npu", ["ethos-u55-32", "ethos-u55-256", "ethos-u65-256"])
def test_the_commands_of_other_accelerators(tmp_path: Path, npu: str) -> None:
    assert same_on_npu(one_operator(tmp_path, "conv"), npu)


@needs_vela
def test_several_inputs_are_copied_into_one_block(tmp_path: Path) -> None:
    path = saved(tmp_path, ([], Call("ADD", ["x", "other"], ["y"], "AddOptions")), inputs=("x", "other"))
    assert same_on_npu(path)
    compiled = compile_model(path, Options(npu=NPU, target="host"))
    assert compiled.files["model.c"].count("memcpy(&memory[") == 2
    for name, text in compiled.files.items():
        (tmp_path / name).write_text(text)
    command = ["gcc", *FLAGS, f"-I{RUNTIME / 'include'}", "-fsyntax-only", "model.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


@needs_vela
def test_settings_that_other_models_have_too(tmp_path: Path) -> None:
    """Shapes and outputs are applied before the NPU gets its parts, whatever the file is."""
    compiled = compile_model(in_between(tmp_path), Options(npu=NPU, outputs=("a",)))
    assert [node.op.kind for node in compiled.graph.nodes] == ["EthosU"]
    assert compiled.graph.outputs == ("a",)


@needs_vela
def test_functions_of_bytes_stay_layers_for_the_npu(tmp_path: Path) -> None:
    """Without an NPU they are one table."""
    one = Value.constant("one", np.array([40], np.int8), Quant((0.02,), (0,)))
    chain = [([one], Call("MUL", ["x", "one"], ["m"], "MulOptions"))]
    chain += [([], Call("ADD", ["m", "one"], ["y"], "AddOptions"))]
    path = saved(tmp_path, *chain)
    made = [compile_model(path, Options(npu=npu)).graph for npu in ("", NPU)]
    assert [[node.op.kind for node in graph.nodes] for graph in made] == [["Lookup"], ["EthosU"]]


def test_layers_from_tflite_have_operators_of_tflite_again(models_folder: Path) -> None:
    """After the passes, too; they compute the same, bit for bit."""
    for name in ("mlonmcu_rnnoise_int8", "efinix_yolo_person_int8", "mww_hey_jarvis_v2_int8"):
        graph = optimize(importers.load(models_folder / f"{name}.tflite"), steps=without_tables(PASSES))
        file = written(graph)
        assert not file.inexact
        custom = {call.custom for call in file.part.calls if call.custom}
        assert custom <= {"Requantize"}, name  # to uint8
        (main,) = parse(Path(name), file.content)
        assert len(main.operators) >= len(graph.nodes)


@needs_vela
def test_parts_on_both_sides_of_a_cpu_operator_compute_the_same(tmp_path: Path) -> None:
    assert same_on_npu(in_between(tmp_path)).count("conv") == 2


MODELS = ("mlperf_kws", "mlperf_ad", "mlperf_resnet", "mlperf_vww", "mww_hey_jarvis_v2")


@needs_vela
@pytest.mark.tenth
@pytest.mark.parametrize("name", MODELS)
def test_whole_models_compute_the_same(models_folder: Path, name: str) -> None:
    """The last of them keeps states."""
    assert len(same_on_npu(models_folder / f"{name}_int8.tflite")) >= 10


@needs_vela
@pytest.mark.tenth
@pytest.mark.parametrize("name", ["microkws_qdq", "kaijiang_resnet_qdq"])
def test_onnx_models_go_the_same_way(models_folder: Path, name: str) -> None:
    path = models_folder / f"{name}.onnx"
    assert len(same_on_npu(path)) > 10
    split, whole = compile_model(path, Options(npu=NPU)), compile_model(path, Options())
    assert any("rounds as TensorFlow Lite does" in note for note in split.graph.notes)
    (tensor,) = (split.graph.tensors[name] for name in split.graph.inputs)
    x = {tensor.name: np.random.default_rng(6).normal(size=tensor.shape).astype(np.float32)}
    (ours,), (theirs,) = (interpret(compiled.graph, [x]) for compiled in (split, whole))
    (output,) = split.graph.outputs
    assert np.abs(ours[output] - theirs[output]).max() < 0.05  # one step here and there, of probabilities
