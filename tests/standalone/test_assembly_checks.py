# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Offsets and code sizes that assembly relies on: a change of one side alone does not build."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tinyml.cores.targets import find_target
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE

BACKWARDS = "attempt to move .org backwards"


@dataclass(frozen=True)
class Change:
    """``before`` becomes ``after`` in a kernel, which a compiler for ``core`` then refuses.

    ``header``: the header of the kernel that is changed, if it is not the source itself.
    """

    source: str
    core: str
    before: str
    after: str
    message: str = BACKWARDS
    header: str = ""

    @property
    def file(self) -> Path:
        """What is changed."""
        source = RUNTIME_C / self.source
        return source.with_name(self.header) if self.header else source


HELIUM = "conv_filters_mve_s8.h"
CHANGES = [
    Change("conv/conv_mve_s8.c", "cortex-m55", "MULTIPLY_BYTES 56", "MULTIPLY_BYTES 52", header=HELIUM),
    Change("conv/conv_mve_s8.c", "cortex-m55", "MULTIPLY_BYTES 56", "MULTIPLY_BYTES 60", header=HELIUM),
    Change("conv/conv_mve_s8.c", "cortex-m55", "BRANCH_BYTES 8", "BRANCH_BYTES 6", header=HELIUM),
    Change(
        "conv/conv_mve_s8.c",
        "cortex-m55",
        '"add pc, r5\\n\\t"',
        '"add pc, r5\\n\\tnop\\n\\t"',
        header=HELIUM,
    ),
    Change("conv/conv_pairs_s8.c", "cortex-m4", "CODE_OF_A_STEP 48", "CODE_OF_A_STEP 44"),
    Change("conv/conv_pairs_s8.c", "cortex-m4", '"sxtb16 r2, r2\\n\\t"', '"sxtb16 r2, r2\\n\\tnop\\n\\t"'),
    Change("dense/dense_pairs_s8.c", "cortex-m4", '"ldr.w r3, [r1], #4', '"ldr.w r3, [r1], #4\\n\\tnop'),
    Change("dense/dense_sixes_s8.c", "cortex-m4", "CODE_OF_A_WORD  92", "CODE_OF_A_WORD  96"),
    Change(
        "conv/conv_mve_s8.c",
        "cortex-m55",
        "int8_t low[TINYML_LANES];",
        "int8_t low[2 * TINYML_LANES];",
        "assembly expects struct filters.high at byte 64",
        HELIUM,
    ),
    Change(
        "conv/depthwise_halves_s8.c",
        "cortex-m0",
        "int32_t factor_low;",
        "int32_t factor_high, factor_low;",
        "assembly expects struct walk.factor_low at byte 44",
    ),
    Change(
        "conv/conv_s8.c",
        "cortex-m0",
        "#define WINDOWS   3",
        "#define WINDOWS   4",
        "words of the next filter",
    ),
]


def compile_kernel(text: str, change: Change, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a copy of the kernel, with ``text`` as the file that is changed."""
    flags = find_target(change.core).gcc_flags
    source = RUNTIME_C / change.source
    home = source.parent
    for path, content in {source: source.read_text(), change.file: text}.items():
        (folder / path.name).write_text(content.replace('#include "../', f'#include "{home.parent}/'))
    includes = (f"-I{RUNTIME_INCLUDE}", f"-I{home}")
    return subprocess.run(
        ["arm-none-eabi-gcc", *flags, "-std=c11", "-O2", *includes, "-c", source.name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{Path(change.source).stem}-{change.after}")
def test_a_change_of_one_side_does_not_build(change: Change, tmp_path: Path) -> None:
    text = change.file.read_text()
    assert change.before in text
    assert compile_kernel(text, change, tmp_path).returncode == 0
    refused = compile_kernel(text.replace(change.before, change.after), change, tmp_path)
    assert refused.returncode != 0
    assert change.message in refused.stderr
