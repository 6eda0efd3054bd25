# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Published models, compiled and run under sanitizers: every golden output of every one of them.

The models are not part of the repository: ``TINYML_MODELS`` points to their folder, by default one next to
the repository. Int8 TFLite models must agree in every byte with the reference kernels of TensorFlow Lite
2.14; all others must agree up to the order of additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.interpret import interpret
from tinyml import importers
from tinyml.harness import run_files
from tinyml.harness.program_build import Options as BuildOptions
from tinyml.ir import Array, Graph, Shape
from tinyml.pipeline import Options, compile_model, optimize

TFLITE = (
    "coral_lstm_int8",
    "efinix_blazeface_int8",
    "efinix_yolo_person_int8",
    "har_ashwin_int8",
    "mcunet_vww_int8",
    "mlonmcu_magicwand_float",
    "mlonmcu_rnnoise_int8",
    "mlonmcu_textclass_float",
    "mlperf_ad_int8",
    "mlperf_kws_int8",
    "mlperf_resnet_int8",
    "mlperf_strww_int8",
    "mlperf_vww_int8",
    "mww_hey_jarvis_v2_int8",
    "oww_computer_float",
    "silabs_ad_dynreshape_int8",
    "tinyodom_tcn_float",
)
ONNX = (
    "alibaba_ic_float",
    "d_espdl_stream_qop_u8",
    "d_st_mbv2_qdq_s8",
    "d_tinyvit_qdq_s8",
    "deeploy_ae1d_float",
    "deeploy_tinyvit_float",
    "dory_tcn_nemo",
    "espdl_stream_float",
    "kaijiang_resnet_qdq",
    "microkws_qdq",
    "microkws_qop",
    "pose_gru_float",
    "st_yamnet256_float",
    "tract_bidilstm_float",
    "yunet_s_float",
)
NO_LAST_ACTIVATION = ("efinix_yolo_person_int8", "mlperf_ad_int8", "tinyodom_tcn_float")


@dataclass(frozen=True)
class Golden:
    """The npz file of a model. Moments "" and _s1… start afresh, _t1… keep the state of the one before."""

    arrays: Mapping[str, Array]

    @property
    def moments(self) -> list[str]:
        found = {key.removeprefix("in0") for key in self.arrays if key.startswith("in0")}
        return sorted(found, key=lambda moment: (moment[:2] == "_s", int(moment[2:] or 0)))

    @property
    def resets(self) -> list[int]:
        return [i for i, moment in enumerate(self.moments) if not moment.startswith("_t")]

    def inputs(self, graph: Graph, moment: str = "") -> dict[str, Array]:
        return {
            name: self.arrays[f"in{i}{moment}"].reshape(graph.tensors[name].shape)
            for i, name in enumerate(graph.inputs)
        }

    def wanted(self, kind: str, index: int, moment: str = "") -> Array | None:
        """The expected outputs, those of TensorFlow Lite 2.14 where later versions differ."""
        key = f"{kind}{index}{moment}"
        return self.arrays.get(f"tfl214_{key}", self.arrays.get(key))

    def shapes(self) -> dict[str, Shape]:
        """For models with dynamic dimensions: the shapes that the goldens have."""
        return {str(n): self.arrays[f"in{i}"].shape for i, n in enumerate(self.arrays["in_names"])}


def find(models_folder: Path, name: str) -> Path:
    """The file of a model; one that is not there is skipped by name."""
    found = [p for p in models_folder.glob(f"{name}.*") if p.suffix in (".tflite", ".onnx")]
    if not found:
        pytest.skip(f"no {name} in the models folder")
    return found[0]


def read_golden(model: Path) -> Golden:
    with np.load(model.with_suffix(".npz")) as file:
        return Golden({key: file[key] for key in file.files})


LARGE = {"efinix_yolo_person_int8", "efinix_blazeface_int8", "d_st_mbv2_qdq_s8", "mcunet_vww_int8"}
"""They take as long as the other models together; the emulated cores run them too."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.deep if name in LARGE else ()) for name in (*TFLITE, *ONNX)],
)
def test_outputs(name: str, models_folder: Path) -> None:
    """All samples and all steps, in C."""
    model = find(models_folder, name)
    golden = read_golden(model)
    shapes = golden.shapes() if model.suffix == ".onnx" else {}
    compiled = compile_model(model, Options(name="model", target="host", kernels="portable", shapes=shapes))
    samples = [golden.inputs(compiled.graph, moment) for moment in golden.moments]
    checks = BuildOptions(optimize="-O1", strict=True, sanitize=True)
    result = run_files(compiled.files, "host", samples, reset_before=golden.resets, options=checks)
    problems = []
    for moment, found in zip(golden.moments, result.outputs, strict=True):
        for index, output in enumerate(compiled.graph.outputs):
            wanted = golden.wanted("out", index, moment)
            assert wanted is not None
            problem = difference(model.stem, found[output], wanted)
            problems += [f"out{index}{moment}: {problem}"] if problem else []
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", [name for name in TFLITE if name not in NO_LAST_ACTIVATION])
def test_before_the_last_activation(name: str, models_folder: Path) -> None:
    """Random inputs saturate a last softmax or sigmoid: the tensor before it must be right too (in numpy)."""
    model = find(models_folder, name)
    golden = read_golden(model)
    graph = optimize(importers.load(model))
    wanted = [w for i in range(len(graph.outputs)) if (w := golden.wanted("pre", i)) is not None]
    assert wanted
    candidates = {name for output in graph.outputs for name in before(graph, output)}
    values = interpret(replace(graph, outputs=tuple(candidates)), golden.inputs(graph) | initial_state(graph))
    for index, array in enumerate(wanted):
        alike = [name for name in candidates if values[name].size == array.size]
        problems = [difference(model.stem, values[n], array) for n in alike]
        assert not all(problems), f"pre{index}: {problems or 'no tensor of this size'}"


def before(graph: Graph, output: str, depth: int = 4) -> list[str]:
    """An output and what it is computed from, a few nodes back, as long as there is one operand."""
    producers, chain = graph.producers(), [output]
    while len(chain) <= depth and (node := producers.get(chain[-1])) is not None:
        operands = [name for name in node.inputs if name and not graph.tensors[name].is_constant]
        if len(operands) != 1:
            break
        chain.append(operands[0])
    return chain


def initial_state(graph: Graph) -> dict[str, Array]:
    values = {}
    for state in graph.states:
        tensor = graph.tensors[state.tensor]
        zero = 0 if tensor.quant is None else tensor.quant.zero_point
        first = np.full(tensor.shape, zero) if state.initial is None else state.initial
        values[state.tensor] = first.astype(tensor.dtype.numpy).reshape(tensor.shape)
    return values


def difference(name: str, found: Array, wanted: Array) -> str:
    """How two arrays differ, in words; empty if they agree as they must."""
    found = found.reshape(wanted.shape)
    error = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    if name in TFLITE and name.endswith("_int8"):
        allowed = 0.0
    else:
        largest = float(np.max(np.abs(wanted), initial=0.0))
        allowed = max(1e-5 * largest, float(np.finfo(np.float32).eps))
    wrong = int(np.count_nonzero(error > allowed))
    return f"{wrong} of {error.size} differ, by up to {error.max():g} ({allowed:g} allowed)" if wrong else ""
