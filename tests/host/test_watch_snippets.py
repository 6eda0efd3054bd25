# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The snippets of docs/watch.md compile, against headers that declare what they call."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tinyml.harness.program_build import RUNTIME_INCLUDE, WARNINGS
from tinyml.harness.tools import host_compiler
from tinyml.pipeline import Options, compile_model

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "tests" / "support" / "watch_stubs"
SNIPPETS = dict(
    re.findall(
        r"<!-- compiled: (\w+) -->\n```c\n(.*?)```",
        (ROOT / "docs" / "watch.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
)


@pytest.mark.parametrize("name", ["memfault", "coap", "lwm2m"])
def test_snippets_compile(name: str, tmp_path: Path) -> None:
    model = compile_model(ROOT / "samples" / "digits" / "model.onnx", Options(name="kws", watch=True))
    for file, text in model.files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    (tmp_path / "snippet.c").write_text(SNIPPETS[name], encoding="utf-8")
    folders = (tmp_path, STUBS, RUNTIME_INCLUDE, ROOT / "zephyr_module" / "include")
    command = [str(host_compiler().path), "-std=c11", "-fsyntax-only", *WARNINGS]
    command += [f"-I{folder}" for folder in folders]
    done = subprocess.run(
        [*command, str(tmp_path / "snippet.c")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
