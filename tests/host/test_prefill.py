# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two models share caches, as docs/decoders.md has it: blocks of a prompt, and the tokens after it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx

from tests.support.decoders import STATES, Shape, model
from tests.support.programs import build_program
from tinyml import harness
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_model

BLOCK, TOKENS, LONGEST = 4, 12, 16
PORT = """
#define prompt_state0 cache_keys
#define prompt_state1 cache_values
#define step_state0 cache_keys
#define step_state1 cache_values
#define TINYML_STATE(type, name, length) extern type name[length]
"""


def compiled(name: str, steps: int, folder: Path) -> Compiled:
    shape = Shape("grouped", groups=2, many=2, size=16, longest=LONGEST, steps=steps, rotary=True)
    onnx.save(model(shape, 3), folder / f"{name}.onnx")
    shapes = dict.fromkeys(STATES, (1, shape.groups, shape.longest, shape.size))
    return compile_model(folder / f"{name}.onnx", Options(name, "host", shapes=shapes))


def a_run(name: str, x: Array, position: int) -> str:
    """The lines of a run that prints its output."""
    numbers = ", ".join(map(repr, x.reshape(-1).tolist()))
    return f"""
	{{
		static const float x[] = {{{numbers}}};

		memcpy({name}_input_x(), x, sizeof(x));
		{name}_input_position()[0] = {position};
		if ({name}_run() != 0 || fwrite({name}_output(), sizeof(x), 1, stdout) != 1) {{
			return 1;
		}}
	}}"""


def test_a_prompt_in_blocks(tmp_path: Path) -> None:
    """Two blocks of a prompt, then single tokens: what single tokens alone give."""
    prompt, step = compiled("prompt", BLOCK, tmp_path), compiled("step", 1, tmp_path)
    xs = np.random.default_rng(1).normal(size=(TOKENS, 12)).astype(np.float32)
    samples = [{"x": x.reshape(1, 1, -1), "position": np.array([i])} for i, x in enumerate(xs)]
    wanted = np.concatenate(
        [found["y"][0] for found in harness.run_files(step.files, "host", samples).outputs]
    )
    lines = [a_run("prompt", xs[at : at + BLOCK], at) for at in (0, BLOCK)]
    lines += [a_run("step", xs[at], at) for at in range(2 * BLOCK, TOKENS)]
    main = f"""
#include <stdio.h>
#include <string.h>
#include <prompt.h>
#include <step.h>

float cache_keys[2 * {LONGEST} * 16], cache_values[2 * {LONGEST} * 16];

int main(void)
{{{"".join(lines)}
	return 0;
}}
"""
    (tmp_path / "main.c").write_text(main)
    (tmp_path / "port.h").write_text(PORT)
    sources = {tmp_path / "main.c"}
    for made in (prompt, step):
        for file, content in made.files.items():
            (tmp_path / file).write_text(content, encoding="utf-8")
        sources |= {tmp_path / f"{made.name}.c"}
        sources |= {RUNTIME_C / source for source in made.summary["sources"]["runtime"]}
    flags = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS, '-DTINYML_PORT_HEADER="port.h"')
    image = build_program(tmp_path / "image", sorted(sources), flags, (tmp_path, RUNTIME_C, RUNTIME_INCLUDE))
    said = subprocess.run([image], stdout=subprocess.PIPE, check=True).stdout
    found = np.frombuffer(said, np.float32).reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
