# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a frame of features takes: front ends, the same as a graph of ONNX operators, Fourier transforms."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml import harness
from tinyml.base.errors import ConfigError, ToolError, writing
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.settings import from_mapping
from tinyml.ir import Array, DType, Graph, Node, Op, Tensor, TensorType
from tinyml.ops.signal.dft import Dft
from tinyml.ops.signal.real_fft import RealFft
from tinyml.pipeline import Options, compile_built, compile_frontend, compile_model

GRAPH = "ONNX graph: DFT of 512 points, 40 mel bands, log"
COARSE_GRAPH = "the same ONNX graph with filters of int8"
FRAMES: Mapping[str, Mapping[str, Any]] = {
    "micro: 480 samples, 40 bands": {"kind": "micro"},
    "mfcc: 512 samples, 40 mel bands, 13 coefficients": {"kind": "mfcc"},
    "mfcc: 512 samples, 40 mel bands in decibels": {"kind": "mfcc", "coefficients": 0},
    "spectral: 256 samples of 3 axes, RMS, kurtosis, 4 bands": {
        "kind": "spectral",
        "axes": 3,
        "bands": "5,50,100,200,400",
    },
}
"""Front ends with their usual settings, by what the table calls them."""

TRANSFORMS: Mapping[str, tuple[Op, TensorType]] = {
    "int16: 512 samples": (RealFft(512), TensorType((1, 512), DType.INT16)),
    "float: 512 samples": (Dft(1, 512, onesided=True), TensorType((1, 512, 1), DType.FLOAT32)),
}
"""Half a spectrum of a real signal, and nothing else."""

TRANSFORM_MACHINES = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4")

PEERS = {("micro: 480 samples, 40 bands", "qemu-cortex-m4"): 85_760}
"""Instructions of TensorFlow's own library for the same features."""


@dataclass(frozen=True)
class Frame:
    """One frame on one machine."""

    name: str
    machine: str
    instructions: int
    flash_bytes: int  # code and tables
    ram_bytes: int
    stack_bytes: int


def measure(name: str, machine: str) -> Frame:
    """Compile one of ``FRAMES`` or ``TRANSFORMS``, or a graph, and run it on noise."""
    target = harness.find_machine(machine).target.name
    generator = np.random.default_rng(0)
    sample: dict[str, Array]
    if name in (GRAPH, COARSE_GRAPH):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "mel.onnx"
            onnx.save(mel_bands(coarse=name == COARSE_GRAPH), path)
            files = compile_model(path, Options(name="mel", target=target)).files
        sample = {"x": generator.normal(0, 1, (1, 480, 1)).astype(np.float32)}
    elif name in TRANSFORMS:
        op, type_ = TRANSFORMS[name]
        files = compile_built(alone(op, type_), Options(target=target)).files
        sample = {"x": generator.normal(0, 3000, type_.shape).astype(type_.dtype.numpy)}
    else:
        frontend = from_mapping(dict(FRAMES[name]), name)
        settings = frontend.settings
        noise = generator.normal(0, 3000, (settings.window, settings.axes))
        files = compile_frontend(frontend, "frame", target)
        sample = {"samples": noise.astype(frontend.of.sample)}
    result = harness.run_files(files, machine, [sample])
    if result.instructions is None or result.footprint is None or result.stack_bytes is None:
        raise ToolError(f"{machine} returned no measurements")
    size = result.footprint.total
    return Frame(name, machine, result.instructions[0], size.flash, size.ram, result.stack_bytes)


def mel_bands(coarse: bool = False) -> onnx.ModelProto:
    """480 samples, a transform of 512 points, the power in 40 mel bands, its logarithm.

    ``coarse``: the filters are int8 with a scale, as tools that quantise weights leave them.
    """
    quantized = [
        helper.make_node("QuantizeLinear", ["filters", "step", "zero"], ["int8_filters"]),
        helper.make_node("DequantizeLinear", ["int8_filters", "step", "zero"], ["coarse_filters"]),
    ]
    nodes = [
        helper.make_node("DFT", ["x", "length"], ["spectrum"], onesided=1, axis=1),
        helper.make_node("Mul", ["spectrum", "spectrum"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "parts"], ["power"], keepdims=0),
        helper.make_node("MelWeightMatrix", ["bands", "length", "rate", "low", "high"], ["filters"]),
        *(quantized if coarse else ()),
        helper.make_node("MatMul", ["power", "coarse_filters" if coarse else "filters"], ["mel"]),
        helper.make_node("Add", ["mel", "floor"], ["positive"]),
        helper.make_node("Log", ["positive"], ["y"]),
    ]
    constants: dict[str, Array] = {"parts": np.array([2], np.int64)}
    for key, whole in {"length": 512, "bands": 40, "rate": 16000}.items():
        constants[key] = np.array(whole, np.int64)
    if coarse:
        constants |= {"step": np.array(1 / 127, np.float32), "zero": np.array(0, np.int8)}
    for key, real in {"low": 125.0, "high": 7500.0, "floor": 1e-6}.items():
        constants[key] = np.array(real, np.float32)
    graph = helper.make_graph(
        nodes,
        "mel",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 480, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def alone(op: Op, type_: TensorType) -> Graph:
    """A model of one operator."""
    x = Tensor.of("x", type_)
    y = Tensor.of("y", op.infer([x])[0])
    return Graph("transform", {"x": x, "y": y}, (Node("transform", op, ("x",), ("y",)),), ("x",), ("y",))


def everything(machines: Sequence[str]) -> list[tuple[str, str]]:
    """What is measured, and where."""
    rows = [(name, machine) for name in (*FRAMES, GRAPH, COARSE_GRAPH) for machine in machines]
    return rows + [(name, machine) for name in TRANSFORMS for machine in TRANSFORM_MACHINES]


def measure_all(machines: Sequence[str]) -> list[Frame]:
    return [measure(name, machine) for name, machine in everything(machines)]


def save(path: Path, frames: Iterable[Frame]) -> None:
    with writing(path):
        path.write_text(json.dumps([asdict(frame) for frame in frames], indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> list[Frame]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [Frame(**{f.name: item[f.name] for f in fields(Frame)}) for item in data]
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{path} is not a record of frames", "python -m tools.benchmarks --measure"
        ) from None


def markdown(frames: Sequence[Frame], machines: Sequence[str], transforms: bool = False) -> str:
    """A row for each kind of frame, a column of instructions for each machine."""
    found = {(frame.name, frame.machine): frame for frame in frames}
    titles = [machine.removeprefix("qemu-").replace("cortex-m", "Cortex-M") for machine in machines]
    lines = [
        f"| {'Transform' if transforms else 'Frame'} | {' | '.join(titles)} | Flash, bytes | RAM, bytes |",
        "| --- |" + " ---: |" * (len(machines) + 2),
    ]
    for name in dict.fromkeys(frame.name for frame in frames):
        if (name in TRANSFORMS) != transforms:
            continue
        cells = []
        for machine in machines:
            frame = found[name, machine]
            peer = PEERS.get((name, machine))
            note = f" (TensorFlow's library: {peer:,})" if peer else ""
            cells.append(f"{frame.instructions:,}{note}")
        last = found[name, machines[-1]]
        lines.append(f"| {name} | {' | '.join(cells)} | {last.flash_bytes:,} | {last.ram_bytes:,} |")
    return "\n".join(lines)
