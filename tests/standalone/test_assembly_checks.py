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
    """``before`` becomes ``after`` in a kernel, which a compiler for ``core`` then refuses."""

    source: str
    core: str
    before: str
    after: str
    message: str = BACKWARDS


CHANGES = [
    Change("conv/conv_mve_s8.c", "cortex-m55", "MULTIPLY_BYTES 56", "MULTIPLY_BYTES 52"),
    Change("conv/conv_mve_s8.c", "cortex-m55", "MULTIPLY_BYTES 56", "MULTIPLY_BYTES 60"),
    Change("conv/conv_mve_s8.c", "cortex-m55", "BRANCH_BYTES 8", "BRANCH_BYTES 6"),
    Change("conv/conv_mve_s8.c", "cortex-m55", '"add pc, r5\\n\\t"', '"add pc, r5\\n\\tnop\\n\\t"'),
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
    flags = find_target(change.core).gcc_flags
    home = (RUNTIME_C / change.source).parent
    copy = folder / Path(change.source).name
    copy.write_text(text.replace('#include "../', f'#include "{home.parent}/'))
    return subprocess.run(
        [
            "arm-none-eabi-gcc",
            *flags,
            "-std=c11",
            "-O2",
            f"-I{RUNTIME_INCLUDE}",
            f"-I{home}",
            "-c",
            str(copy),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{Path(change.source).stem}-{change.after}")
def test_a_change_of_one_side_does_not_build(change: Change, tmp_path: Path) -> None:
    text = (RUNTIME_C / change.source).read_text()
    assert change.before in text
    assert compile_kernel(text, change, tmp_path).returncode == 0
    refused = compile_kernel(text.replace(change.before, change.after), change, tmp_path)
    assert refused.returncode != 0
    assert change.message in refused.stderr
