# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models with states in one arena, run in random order and reset in between: each as if it were alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.random_graphs.tflite_draw import Draw
from tests.random_graphs.tflite_ops import shapes_of_results
from tests.random_graphs.tflite_recurrent import RECURRENT
from tests.support import stateful
from tests.support.interpret import interpret_runs
from tests.support.programs import build_program
from tinyml.base.errors import TinymlError
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_model

FIXED = (stateful.stream, stateful.average, stateful.delay, stateful.svdf, lambda: stateful.lstm(2))
TURNS = 120
SHARED = """
extern unsigned char shared_arena[];
#define TINYML_ARENA(model, size_bytes) static unsigned char *const model##_arena = shared_arena
"""


def drawn(rng: np.random.Generator) -> bytes:
    """A random recurrent layer that LiteRT runs, and we too."""
    while True:
        draw = Draw(rng)
        RECURRENT[int(rng.integers(len(RECURRENT)))](draw)
        shapes = shapes_of_results(draw.file(), draw.samples(1))
        if shapes is not None:
            return draw.file(shapes)


def models(folder: Path, rng: np.random.Generator) -> list[Compiled]:
    found: list[Compiled] = []
    for number, content in enumerate([*(make() for make in FIXED), *(drawn(rng) for _ in range(3))]):
        path = folder / f"m{number}.tflite"
        path.write_bytes(content)
        try:
            found.append(compile_model(path, Options(name=f"m{number}", target="host")))
        except TinymlError:
            if number < len(FIXED):
                raise
    return found


@pytest.mark.parametrize("seed", range(2))
def test_interleaved(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([44, seed])
    compiled = models(tmp_path, rng)
    lines, wanted = [], []
    histories: dict[str, list[dict[str, Array]]] = {model.name: [] for model in compiled}
    tables: list[str] = []
    for turn in range(TURNS):
        model = compiled[int(rng.integers(len(compiled)))]
        name, graph = model.name, model.graph
        (x,), (y,) = graph.inputs, graph.outputs
        tensor = graph.tensors[x]
        if rng.random() < 0.1:
            histories[name].clear()
            lines.append(f"\t{name}_reset();")
        sample = rng.integers(-128, 128, tensor.shape) if tensor.quant else rng.normal(0, 1, tensor.shape)
        histories[name].append({x: sample.astype(tensor.dtype.numpy)})
        wanted.append(interpret_runs(graph, histories[name])[-1][y])
        text = ", ".join(str(byte) for byte in histories[name][-1][x].tobytes())
        tables.append(f"static const unsigned char x{turn}[] = {{{text}}};")
        lines.append(f"\tmemcpy({name}_input(), x{turn}, sizeof(x{turn}));")
        lines.append(
            f"\tif ({name}_run() != 0 || !put({name}_output(), {wanted[-1].nbytes})) {{\n\t\treturn 1;\n\t}}"
        )
    most = max(model.summary["arena_bytes"] for model in compiled)
    main = ["#include <stdio.h>", "#include <string.h>", *(f"#include <{m.name}.h>" for m in compiled)]
    main += [f"__attribute__((aligned(16))) unsigned char shared_arena[{most}];", *tables]
    main.append(
        "static int put(const void *at, size_t size)\n{\n\treturn fwrite(at, 1, size, stdout) == size;\n}"
    )
    main += ["int main(void)\n{", *lines, "\treturn 0;\n}"]
    (tmp_path / "main.c").write_text("\n".join(main) + "\n")
    (tmp_path / "port.h").write_text(SHARED)
    sources = {tmp_path / "main.c"}
    for model in compiled:
        for file, content in model.files.items():
            (tmp_path / file).write_text(content, encoding="utf-8")
        sources |= {tmp_path / f"{model.name}.c"}
        sources |= {RUNTIME_C / source for source in model.summary["sources"]["runtime"]}
    port = ('-DTINYML_PORT_HEADER="port.h"', "-Wno-redundant-decls")
    flags = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS, *port)
    image = build_program(tmp_path / "image", sorted(sources), flags, (tmp_path, RUNTIME_C, RUNTIME_INCLUDE))
    said = subprocess.run([image], stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for turn, value in enumerate(wanted):
        found = np.frombuffer(said[at : at + value.nbytes], value.dtype).reshape(value.shape)
        at += value.nbytes
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5, err_msg=f"turn {turn}")
        else:
            np.testing.assert_array_equal(found, value, err_msg=f"turn {turn}")
    assert at == len(said)
