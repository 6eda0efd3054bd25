# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A sample of what `python -m tools.analyze_c` checks: all warnings of gcc and clang on some operators."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tinyml.harness.build import RUNTIME_C, RUNTIME_INCLUDE
from tools.analyze_c import ANALYSERS, analyse, generate

SOME = r"^softmax: |^pools: "


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_no_warnings(tmp_path: Path, name: str) -> None:
    analyser = next(analyser for analyser in ANALYSERS if analyser.name == name)
    if shutil.which(analyser.program) is None:
        pytest.skip(f"{analyser.program} is not installed")
    groups = generate(tmp_path, SOME)
    assert groups
    runtime = [*RUNTIME_C.glob("softmax/*.c"), *RUNTIME_C.glob("dense/*.c")]
    assert not analyse(analyser, [*groups, *runtime], (tmp_path, RUNTIME_INCLUDE, RUNTIME_C))
    (tmp_path / "bad.c").write_text("int f(long x) { return x; }\n")
    assert analyse(analyser, [tmp_path / "bad.c"], ()), "an analyser that finds nothing"
