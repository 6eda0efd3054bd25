# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models with a front end, fed with samples on the host under sanitizers."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from tinyml.features.settings import FrontEnd
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_model

MAIN = Path(__file__).parent / "feeding.c"
FLAGS = ("-std=c11", "-O1", *WARNINGS, *SANITIZERS)


def negating(folder: Path, shape: Sequence[int]) -> Path:
    """A float model whose output is its input with the other sign: what it was fed can be read off."""
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "negating",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(shape))],
    )
    path = folder / "negating.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compiled_with(model: Path, frontend: FrontEnd) -> Compiled:
    return compile_model(model, Options(name="fed", target="host", frontend=frontend))


def feed(compiled: Compiled, chunks: Iterable[Array | None], whole: bool = False) -> Array:
    """The outputs of all runs; None among the chunks is a reset."""
    name, summary = compiled.name, compiled.summary
    (output,) = summary["outputs"]
    with tempfile.TemporaryDirectory(prefix="tinyml-feed-") as scratch:
        folder = Path(scratch)
        for file, text in compiled.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        includes = (RUNTIME_C, RUNTIME_INCLUDE)
        units = [Unit(RUNTIME_C / file, "feed", FLAGS, includes) for file in summary["sources"]["runtime"]]
        units.append(Unit(folder / f"{name}.c", "feed", FLAGS, includes))
        defines = {
            "HEADER": f'"{name}.h"',
            "FEED": f"{name}_feed",
            "RESET": f"{name}_feed_reset",
            "OUTPUT": f"{name}_output",
            "OUTPUT_BYTES": str(output["bytes"]),
            "SAMPLE": summary["frontend"]["sample"],
            "AXES": str(summary["frontend"]["axes"]),
            **({"WHOLE": "1"} if whole else {}),
        }
        main = (*FLAGS, *(f"-D{key}={value}" for key, value in defines.items()))
        units.append(Unit(MAIN, "feed", main, (*includes, folder)))
        image = folder / "image"
        objects = map(str, compile_all(host_compiler(), units))
        command = [str(host_compiler().path), *SANITIZERS, *objects, "-lm", "-o", str(image)]
        subprocess.run(command, check=True)
        done = subprocess.run([str(image)], input=b"".join(map(_encoded, chunks)), capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return np.frombuffer(done.stdout, output["dtype"]).reshape(-1, *output["shape"])


def _encoded(chunk: Array | None) -> bytes:
    return struct.pack("<I", 0 if chunk is None else len(chunk)) + (b"" if chunk is None else chunk.tobytes())


def cut(samples: Array, seed: int, longest: int) -> list[Array]:
    """The samples in pieces of random lengths."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, len(samples))
    ends = np.cumsum(lengths)
    return [piece for piece in np.split(samples, ends[ends < len(samples)]) if len(piece)]
