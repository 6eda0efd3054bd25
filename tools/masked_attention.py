# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What int8 attention takes whose mask arrives at run time, as one layer and in parts.

The weights are random. ``tools.page_tables`` writes the table into docs/quantize.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.transformers import Writer
from tinyml import harness
from tinyml.cores.machines import MACHINES
from tinyml.ir import Array
from tinyml.quantize.engine import quantize
from tinyml.settings.quantize_request import Request
from tools.transformer_figures import compiled

TOKENS, HEADS, DEPTH = 128, 4, 16
COUNTING = 77
"""Tokens of the run that is counted; the others are padding."""
WIDTH = HEADS * DEPTH
CORES = {"Cortex-M3": "qemu-cortex-m3", "Cortex-M4": "qemu-cortex-m4", "Cortex-M55": "qemu-cortex-m55"}


def attention() -> onnx.ModelProto:
    """With the projections before and after it, and ``attention_mask`` as BERT has it."""
    file = Writer(0)

    def of(op: str, *inputs: str | Array, **attributes: int | list[int]) -> str:
        names = [x if isinstance(x, str) else file.constant(f"c{len(file.constants)}", x) for x in inputs]
        return file.add(op, names, f"{op}{len(file.nodes)}", **attributes)

    parts = {}
    for word, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        apart = of("Reshape", file.dense("x", WIDTH, WIDTH, word), np.array([1, TOKENS, HEADS, DEPTH]))
        parts[word] = of("Transpose", apart, perm=perm)
    scores = of("Mul", of("MatMul", parts["q"], parts["k"]), np.array(DEPTH**-0.5))
    counts = of("Cast", of("Unsqueeze", "mask", np.array([1, 2])), to=TensorProto.FLOAT)
    hidden = of("Mul", of("Sub", np.array(1.0), counts), np.array(-1e4))
    weights = of("Softmax", of("Add", scores, hidden), axis=-1)
    rows = of("Transpose", of("MatMul", weights, parts["v"]), perm=[0, 2, 1, 3])
    y = file.dense(of("Reshape", rows, np.array([1, TOKENS, WIDTH])), WIDTH, WIDTH, "out")
    value, shape = helper.make_tensor_value_info, [1, TOKENS, WIDTH]
    graph = helper.make_graph(
        file.nodes,
        "attention",
        [value("x", TensorProto.FLOAT, shape), value("mask", TensorProto.INT64, [1, TOKENS])],
        [value(y, TensorProto.FLOAT, shape)],
        file.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples(count: int) -> dict[str, Array]:
    x = np.random.default_rng(1).normal(0, 1, (count, 1, TOKENS, WIDTH)).astype(np.float32)
    mask = (np.arange(TOKENS) < COUNTING).astype(np.int64)
    return {"x": x, "mask": np.tile(mask, (count, 1, 1))}


def quantized() -> bytes:
    """The model file, in int8."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        model, drawn = Path(folder, "model.onnx"), Path(folder, "samples.npz")
        onnx.save(attention(), model)
        np.savez(drawn, **samples(4))  # type: ignore[arg-type]
        return quantize(model, Request(drawn, method="minmax")).model.SerializeToString()


def rows() -> Iterator[str]:
    yield "| core | RAM, in parts | RAM | instructions, in parts | instructions |"
    yield "|---|---:|---:|---:|---:|"
    model = quantized()
    given = {name: array[0] for name, array in samples(1).items()}
    for title, machine in CORES.items():
        made = [compiled(model, MACHINES[machine].target.name, apart) for apart in (True, False)]
        counts = [each.summary["arena_bytes"] for each in made]
        for each in made:
            counts += harness.run_files(each.files, machine, [given]).instructions or (0,)
        yield f"| {title} | {' | '.join(f'{count:,}' for count in counts)} |"
