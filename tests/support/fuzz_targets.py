# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: each target takes bytes and may raise a TinymlError, and nothing else."""
# ruff: noqa: E501 (one node to a line)

from __future__ import annotations

import io
import os
import random
import struct
import tempfile
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.support import packed_files, stateful, tflite_cases
from tests.support.mutations import changed_bytes, changed_onnx
from tinyml import importers
from tinyml.base.errors import TinymlError
from tinyml.base.limits import VARIABLE
from tinyml.datasets import reader
from tinyml.datasets.shaping import Input
from tinyml.emit.model import Provenance
from tinyml.importers import ModelFile
from tinyml.ir import Array, DType
from tinyml.pipeline import Options, compile_graph
from tinyml.projects import manifest
from tinyml.settings.quantize_request import Request

SMALL = {
    "tensor_elements": 2**16,
    "total_elements": 2**19,
    "multiplications": 2**22,
    "nodes": 300,
    "file_bytes": 2**22,
    "samples_bytes": 2**22,
}
"""Limits while fuzzing, so that an input takes milliseconds."""


@dataclass(frozen=True)
class Target:
    """How bytes are used, which are good, and how good ones are made bad."""

    use: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    change: Callable[[bytes, random.Random], bytes]


def tried(target: Target, content: bytes) -> bool:
    """Whether the bytes were accepted. Raises what is not a TinymlError."""
    try:
        with np.errstate(all="ignore"):
            target.use(content)
    except TinymlError:
        return False
    return True


@contextmanager
def small_limits() -> Iterator[None]:
    """Limits for fuzzing in the environment."""
    before = dict(os.environ)
    os.environ.update({VARIABLE + name.upper(): str(value) for name, value in SMALL.items()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def compiled(content: bytes) -> None:
    """From the bytes of a model to C."""
    file = ModelFile(Path("model"), content)
    compile_graph(importers.read(file), "model", Provenance("model", file.sha256, ""), Options(bands=False))


def _calibration(suffix: str) -> Callable[[bytes], object]:
    shape = {".png": (1, 4, 4, 3), ".wav": (1, 16)}.get(suffix, (1, 3, 4))
    inputs = (Input("x", shape, DType.FLOAT32),)

    def use(content: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / (f"a{suffix}" if suffix in (".npy", ".npz", ".csv") else f"data/a{suffix}")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            return reader.load(Request(path if path.parent == Path(folder) else path.parent), inputs)

    return use


def _manifest(content: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tinyml.yaml"
        path.write_bytes(content)
        return manifest.load(path)


# --- good files ------------------------------------------------------------------------------------


def _onnx(nodes: list[onnx.NodeProto], shape: list[int], **constants: object) -> bytes:
    graph = helper.make_graph(
        nodes,
        "seed",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@cache
def onnx_seeds() -> list[bytes]:
    """Families of operators, each in a model of a few nodes."""
    node = helper.make_node

    def ones(*shape: int) -> Array:
        return np.ones(shape, np.float32)

    image = [1, 2, 6, 6]
    quant = {"s": np.float32(0.1), "z": np.int8(3)}
    return [
        _onnx([node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", ["c"], ["y"])],
              image, w=ones(3, 2, 3, 3), b=ones(3)),
        _onnx([node("Conv", ["x", "w"], ["c"], group=2), node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2]),
               node("AveragePool", ["p"], ["y"], kernel_shape=[2, 2], count_include_pad=1)], image, w=ones(4, 1, 2, 2)),
        _onnx([node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 2])], image, w=ones(2, 3, 2, 2), b=ones(3)),
        _onnx([node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w", "b"], ["g"], transB=1),
               node("Softmax", ["g"], ["y"])], image, w=ones(5, 72), b=ones(5)),
        _onnx([node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["a"]), node("Sigmoid", ["a"], ["y"])],
              [1, 3, 4], w=ones(4, 5), b=ones(5)),
        _onnx([node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), node("Reshape", ["t", "r"], ["q"]),
               node("Slice", ["q", "lo", "hi"], ["y"])], image,
              r=np.array([6, -1]), lo=np.array([1, 0]), hi=np.array([4, 9])),
        _onnx([node("Split", ["x", "n"], ["a", "b"], axis=2), node("Concat", ["b", "a"], ["c"], axis=2),
               node("Pad", ["c", "p", "v"], ["y"])], image,
              n=np.array([2, 4]), p=np.array([0, 0, 1, 1, 0, 0, 1, 1]), v=np.float32(2)),
        _onnx([node("Resize", ["x", "", "k"], ["r"], mode="linear"), node("ReduceMean", ["r"], ["y"], axes=[2, 3])],
              image, k=np.array([1, 1, 2, 0.7], np.float32)),
        _onnx([node("LSTM", ["x", "w", "r", "b"], ["h", "", ""], hidden_size=3), node("Squeeze", ["h", "o"], ["y"])],
              [4, 1, 2], w=ones(1, 12, 2), r=ones(1, 12, 3), b=ones(1, 24), o=np.array([1])),
        _onnx([node("GRU", ["x", "w", "r", "b"], ["y", ""], hidden_size=3)], [4, 1, 2],
              w=ones(1, 9, 2), r=ones(1, 9, 3), b=ones(1, 18)),
        _onnx([node("Gather", ["x", "i"], ["g"], axis=1), node("Tile", ["g", "t"], ["e"]),
               node("LayerNormalization", ["e", "w"], ["y"])], [1, 3, 4],
              i=np.array([2, 0]), t=np.array([1, 1, 2]), w=ones(8)),
        _onnx([node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
               node("DequantizeLinear", ["w", "s", "z"], ["v"]), node("Conv", ["d", "v"], ["c"]),
               node("QuantizeLinear", ["c", "s", "z"], ["u"]), node("DequantizeLinear", ["u", "s", "z"], ["y"])],
              image, w=np.ones((3, 2, 2, 2), np.int8), **quant),
        _onnx([node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("Pad", ["q", "p", "f"], ["u"]),
               node("QLinearConv", ["u", "s", "z", "w", "s", "z", "s", "z", "b"], ["c"]),
               node("DequantizeLinear", ["c", "s", "z"], ["y"])], image, w=np.ones((3, 2, 2, 2), np.int8),
              p=np.array([0, 0, 1, 1, 0, 0, 1, 1]), f=np.int8(7), b=np.ones(3, np.int32), **quant),
        _onnx([node("BatchNormalization", ["x", "w", "b", "m", "v"], ["n"]), node("Clip", ["n", "lo", "hi"], ["c"]),
               node("TopK", ["c", "k"], ["y", "i"])], image, w=ones(2), b=ones(2), m=ones(2), v=ones(2),
              lo=np.float32(0), hi=np.float32(6), k=np.array([2])),
        _onnx([node("ScatterND", ["x", "i", "u"], ["s"]), node("GatherND", ["s", "i"], ["g"]),
               node("Einsum", ["g", "g"], ["y"], equation="ab,ab->a")], [3, 4],
              i=np.array([[1], [2]]), u=ones(2, 4)),
        *packed_files.onnx_files(),
    ]  # fmt: skip


@cache
def tflite_seeds() -> list[bytes]:
    """A part of the recorded cases of operators, and models with state."""
    cases = tflite_cases.all_cases()
    some = [case.content for case in cases[:: max(1, len(cases) // 40)]]
    return [
        *some,
        stateful.stream(),
        stateful.average(),
        stateful.svdf(),
        stateful.lstm(2),
        *packed_files.tflite_files(),
    ]


def _npy() -> list[bytes]:
    stream = io.BytesIO()
    np.save(stream, np.ones((4, 1, 3, 4), np.float32))
    return [stream.getvalue()]


def _npz() -> list[bytes]:
    stream = io.BytesIO()
    np.savez(stream, x=np.ones((4, 1, 3, 4), np.float32), labels=np.arange(4))
    packed = io.BytesIO()
    np.savez_compressed(packed, x=np.ones((4, 1, 3, 4), np.float32))
    return [stream.getvalue(), packed.getvalue()]


def _csv() -> list[bytes]:
    row = ",".join(["0.5"] * 12)
    return [f"{row}\n{row}\n".encode(), f"label,{','.join('abcdefghijkl')}\n1,{row}\n".encode()]


def _wav() -> list[bytes]:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 16000, 64, "NONE", ""))
        file.writeframes(struct.pack("<64h", *range(64)))
    return [stream.getvalue()]


def _png() -> list[bytes]:
    from PIL import Image

    found = []
    for kind in ("PNG", "BMP", "GIF"):
        stream = io.BytesIO()
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(stream, kind)
        found.append(stream.getvalue())
    return found


def _yaml() -> list[bytes]:
    text = """models:
  - name: kws
    file: kws.onnx
    kernels: portable
    shapes: {input: 1x49x40}
    budget: {ram: 64K, flash: 1M}
    quantize: {calibration: calib.npz, keep_float: [a, b]}
"""
    return [text.encode()]


def _bytes_or_messages(content: bytes, rng: random.Random) -> bytes:
    return changed_onnx(content, rng) if rng.random() < 0.8 else changed_bytes(content, rng)


TARGETS = {
    "onnx": Target(compiled, onnx_seeds, _bytes_or_messages),
    "tflite": Target(compiled, tflite_seeds, changed_bytes),
    "npy": Target(_calibration(".npy"), _npy, changed_bytes),
    "npz": Target(_calibration(".npz"), _npz, changed_bytes),
    "csv": Target(_calibration(".csv"), _csv, changed_bytes),
    "wav": Target(_calibration(".wav"), _wav, changed_bytes),
    "images": Target(_calibration(".png"), _png, changed_bytes),
    "manifest": Target(_manifest, _yaml, changed_bytes),
}
