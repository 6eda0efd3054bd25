# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The one source with what models call of CMSIS-NN."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tinyml.ops import catalog  # noqa: F401  (registers the kernels)
from tinyml.ops.conv.cmsis import GENERAL
from tinyml.ops.framework.kernel import Kernel, Library
from tinyml.ops.weighted.cmsis_nn import NEEDED_BY_ONCE
from tinyml.projects import cmsis_nn_source
from tinyml.setup.workspace import find_cmsis_nn


def kernels_below(kind: type[Any]) -> list[type[Any]]:
    children: list[type[Any]] = kind.__subclasses__()
    return [kind, *(below for child in children for below in kernels_below(child))]


def all_sources() -> set[str]:
    """What the compiler's kernels may list."""
    found = {
        source
        for kernel in kernels_below(Kernel)
        if getattr(kernel, "library", None) is Library.CMSIS_NN
        for source in getattr(kernel, "sources", ())
    }
    return found | set(NEEDED_BY_ONCE)


def test_it_includes_what_the_summaries_list(tmp_path: Path) -> None:
    summaries = []
    for name, sources in {"a": ["Source/X/x.c", "Source/Y/y.c"], "b": ["Source/X/x.c"], "c": []}.items():
        summaries.append(tmp_path / f"{name}.json")
        summaries[-1].write_text(json.dumps({"sources": {"cmsis-nn": sources}}))
    out = tmp_path / "deep" / "out.c"
    assert cmsis_nn_source.main([str(out), *map(str, summaries)]) == 0
    assert re.findall(r"#include <\.\./(.*)>", out.read_text()) == ["Source/X/x.c", "Source/Y/y.c"]
    stamp = out.stat().st_mtime_ns
    cmsis_nn_source.write(out, summaries)
    assert out.stat().st_mtime_ns == stamp, "an unchanged source is not compiled again"
    cmsis_nn_source.write(out, summaries[2:])
    assert "#include" not in out.read_text()


def test_all_sources_of_kernels_compile_in_one(tmp_path: Path) -> None:
    """No two of them define the same static name."""
    sources = all_sources()
    assert set(GENERAL) <= sources
    library = find_cmsis_nn()
    if library is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    (tmp_path / "all.c").write_text(cmsis_nn_source.text(sources))
    options = [
        "-O0",
        "-w",
        "-c",
        f"-I{library / 'Include'}",
        str(tmp_path / "all.c"),
        "-o",
        str(tmp_path / "all.o"),
    ]
    subprocess.run(["gcc", *options], check=True)
    if shutil.which("arm-none-eabi-gcc"):
        for cpu in ("cortex-m0", "cortex-m4", "cortex-m55"):
            abi = ["-mfloat-abi=hard"] if cpu == "cortex-m55" else []
            subprocess.run(["arm-none-eabi-gcc", "-mthumb", f"-mcpu={cpu}", *abi, *options], check=True)
