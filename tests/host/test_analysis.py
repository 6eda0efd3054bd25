# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What `python -m tools.analyze_c` checks: all analysers on all operators; a part of that in `make test`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE
from tools.analyze_c import ANALYSERS, Analyser, analyse, generate

SOME = r"^softmax: |^pools: "


@pytest.mark.deep
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("analyser", ANALYSERS, ids=lambda analyser: analyser.name)
def test_all_operators(tmp_path: Path, analyser: Analyser) -> None:
    if shutil.which(analyser.program) is None:
        pytest.skip(f"{analyser.program} is not installed")
    sources = [*generate(tmp_path), *sorted(RUNTIME_C.rglob("*.c"))]
    found = analyse(analyser, sources, (tmp_path, RUNTIME_INCLUDE, RUNTIME_C))
    assert not found, "\n".join(found)


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
