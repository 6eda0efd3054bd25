# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A Twister test for a model: the text of its files, from known inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.templates import render
from tinyml.ir import Array, DType
from tinyml.ops.framework.maths import FULL_LIBC
from tinyml.ops.weighted.float16_sums import TOLERANCE
from tinyml.projects import edit
from tinyml.projects.manifest import ModelEntry

UNDEFINED = "# Is TINYML an undefined symbol? README.md says how Zephyr finds it."
"""In prj.conf, above the line at which Kconfig stops."""

PLATFORMS = ("qemu_cortex_m3", "native_sim/native/64")
"""For --integration: boards that every supported Zephyr has. With -p the test runs on any other."""

LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"
"""In every file of a test, as Zephyr's compliance check demands of files in a repository."""

# What a test image needs in addition to the model, roughly: Twister skips boards with less than the sum.
_OTHER_RAM_KILOBYTES = 12
_OTHER_FLASH_KILOBYTES = 40


@dataclass(frozen=True)
class Golden:
    """Samples in the order of the model's inputs and outputs; ``origin`` is where the outputs come from."""

    inputs: Sequence[Sequence[Array]]
    outputs: Sequence[Sequence[Array]]
    origin: str

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for group in (*self.inputs, *self.outputs) for array in group)


@dataclass(frozen=True)
class Accuracy:
    """Rows of a test set in the order of the model's inputs, their classes, and how many must be right.

    ``starts``: rows before which a model with state is reset. ``output``: the index of the one that decides.
    """

    inputs: Sequence[Sequence[Array]]
    classes: Sequence[int]
    starts: Sequence[bool]
    needed: int
    output: int
    scores: int  # its elements
    is_number: bool  # the output is a class number, not scores

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for group in self.inputs for array in group)


@dataclass(frozen=True)
class _Table:
    name: str
    c_type: str
    length: int
    rows: list[c.Code]


def test_files(
    entry: ModelEntry,
    file: str,
    summary: Mapping[str, Any],
    golden: Golden,
    platforms: Sequence[str] = (),
    accuracy: Accuracy | None = None,
) -> dict[str, str]:
    """The files of a test by path.

    ``file`` is the model's path relative to the test; ``platforms`` are the user's boards.
    """
    settings = [LICENCE, "CONFIG_ZTEST=y", "CONFIG_TINYML=y"]
    if summary["libm"]:
        settings.append(FULL_LIBC)
    listed = edit.add_model("", entry.having(file=file, arena_region=None, weights=None, evaluate=None))
    ram = summary["arena_bytes"] + summary["state_bytes"]
    flash = summary["weights_bytes"] + golden.bytes + (accuracy.bytes if accuracy else 0)
    context = {
        "name": entry.name,
        "count": len(golden.inputs),
        "origin": golden.origin,
        "platforms": list(dict.fromkeys((*PLATFORMS, *platforms))),
        "ram_kilobytes": _OTHER_RAM_KILOBYTES + -(-ram // 1024),
        "flash_kilobytes": _OTHER_FLASH_KILOBYTES + -(-flash // 1024),
        "tables": [*_tables("in", golden.inputs), *_tables("out", golden.outputs)],
        "inputs": _names("in", golden.inputs),
        "outputs": _names("out", golden.outputs),
        "accuracy": accuracy,
        "tolerance": c.Code(f"{TOLERANCE:g}f") if entry.arithmetic == "float16" else c.Code("1e-4f"),
    }
    files = {
        "CMakeLists.txt": render("projects", "test_cmake.txt.j2", context),
        "prj.conf": "\n".join(settings) + "\n",
        "testcase.yaml": render("projects", "testcase.yaml.j2", context),
        "tinyml.yaml": f"{LICENCE}\n{listed}",
        "src/main.c": render("projects", "test_main.c.j2", context),
        "src/golden.h": render("projects", "test_golden.h.j2", context),
    }
    if accuracy:
        rows = {"tables": _tables("row", accuracy.inputs), "rows": _names("row", accuracy.inputs)}
        files["src/evaluation.h"] = render("projects", "test_evaluation.h.j2", context | rows)
    return files


def _tables(word: str, samples: Sequence[Sequence[Array]]) -> list[_Table]:
    return [
        _Table(name, DType.of(array).c, array.size, c.code(c.table_rows(array)))
        for names, sample in zip(_names(word, samples), samples, strict=True)
        for name, array in zip(names, sample, strict=True)
    ]


def _names(word: str, samples: Sequence[Sequence[Array]]) -> list[list[str]]:
    return [[f"{word}{i}_{index}" for i in range(len(sample))] for index, sample in enumerate(samples)]
