# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What CBMC proves of the runtime and of generated C, and faults that it finds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.proofs.proving import HERE, PROGRAM, PROVED, REFUTED, Harness, cbmc, harnesses, prove
from tinyml.api.evidence.kernels import CHECKS
from tinyml.emit.model import Provenance
from tinyml.harness.program_build import RUNTIME_C
from tinyml.ir import DType, Graph, Node, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph
from tools import kernel_checks


@pytest.fixture
def program() -> None:
    if cbmc() is None:
        pytest.skip(f"cbmc is not installed (nor named by {PROGRAM}): docs/evidence.md")


def runs() -> Iterator[object]:
    for harness in harnesses():
        for variant in harness.variants:
            marks = [pytest.mark.deep] if harness.key("deep") and variant not in harness.key("quick") else []
            yield pytest.param(harness, variant, id=f"{harness.name} {variant}".strip(), marks=marks)


@pytest.mark.usefixtures("program")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("harness, variant", [*runs()])
def test_proof(harness: Harness, variant: str) -> None:
    said = harness.run(variant)
    assert PROVED in said, "\n".join(line for line in said.splitlines() if "FAILURE" in line) or said[-2000:]


FAULTS = {
    "pack_file": ("player/pack_file.c", "bytes > file->bytes - position", "bytes > file->bytes"),
    "output_s8": ("weighted/output_s8.h", "(q >> ~shift)", "(q << ~shift)"),
    "conv_s8": ("conv/conv_columns_s8.h", "in_w + col + first)", "in_w + col)"),
    "depthwise_conv_s8": ("conv/plane_s8.h", "next < end", "next <= end"),
}
DEEP_FAULTS = {
    "player_check": ("player/check.c", "at[1] > check->left - 2u", "at[1] > check->left"),
    "player_call": (
        "player/check.c",
        "bytes = tinyml_check_plus(tinyml_check_times(step, check->turns - 1u), bytes);",
        "",
    ),
    "player_open": ("player/open.c", "!open_inside(image, record->shape, 4u * record->rank) ||", ""),
}


@pytest.mark.usefixtures("program")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", [*FAULTS, *(pytest.param(one, marks=pytest.mark.deep) for one in DEEP_FAULTS)]
)
def test_a_seeded_fault_is_found(name: str, tmp_path: Path) -> None:
    """A check that was left out, a shift the wrong way round, a window or a row that is too long."""
    file, right, wrong = {**FAULTS, **DEEP_FAULTS}[name]
    root = tmp_path / "runtime"
    shutil.copytree(RUNTIME_C, root)
    text = (root / file).read_text()
    assert right in text
    (root / file).write_text(text.replace(right, wrong, 1))
    harness = Harness(HERE / f"{name}.c")
    assert REFUTED in harness.run(harness.key("quick") or harness.variants[0], root=root)


def small() -> Graph:
    """A dense layer, from bytes to bytes."""
    rng = np.random.default_rng(5)
    w = rng.integers(-127, 128, (5, 3)).astype(np.int8)
    tensors = [
        Tensor("x", (1, 3), DType.INT8, Quant.per_tensor(0.1, 3)),
        Tensor("w", w.shape, DType.INT8, Quant.per_tensor(0.01, 0), data=w),
        Tensor("y", (1, 5), DType.INT8, Quant.per_tensor(0.4, -7)),
        Tensor("b", (5,), DType.INT32, data=rng.integers(-999, 999, 5).astype(np.int32)),
    ]
    node = Node("dense", Dense(), ("x", "w", "b"), ("y",))
    return Graph("small", {t.name: t for t in tensors}, (node,), ("x",), ("y",))


def small_conv() -> Graph:
    """Two filters of three rows and columns, with padding at two sides and a limit."""
    rng = np.random.default_rng(5)
    w = rng.integers(-127, 128, (2, 3, 3, 1)).astype(np.int8)
    tensors = [
        Tensor("x", (1, 3, 3, 1), DType.INT8, Quant.per_tensor(0.1, 3)),
        Tensor("w", w.shape, DType.INT8, Quant.per_tensor(0.01, 0), data=w),
        Tensor("y", (1, 2, 2, 2), DType.INT8, Quant.per_tensor(0.4, -7)),
        Tensor("b", (2,), DType.INT32, data=rng.integers(-999, 999, 2).astype(np.int32)),
    ]
    node = Node("conv", Conv(pads=(1, 1, 0, 0), clamp=(0.0, np.inf)), ("x", "w", "b"), ("y",))
    return Graph("small", {t.name: t for t in tensors}, (node,), ("x",), ("y",))


WHOLE = """#include "proof.h"
#include "small.h"

int main(void)
{
	__CPROVER_havoc_slice(small_input(), BYTES);
	__CPROVER_assert(small_run() == 0, "a run ends well");
	return 0;
}
"""


def generated(graph: Graph, folder: Path, right: str = "", wrong: str = "", turns: int = 8) -> str:
    """The answer about the C of a small model; ``right`` in its records is replaced by ``wrong``."""
    compiled = compile_graph(
        graph, "small", Provenance("small", "0" * 64, ""), Options(target="host", kernels="portable")
    )
    assert right in compiled.files["small.c"]
    for name, text in compiled.files.items():
        (folder / name).write_text(text.replace(right, wrong) if right else text)
    (folder / "whole.c").write_text(WHOLE.replace("BYTES", str(graph.tensors["x"].elements)))
    needed = [RUNTIME_C / name for name in compiled.summary["sources"]["runtime"]]
    sources = [folder / "whole.c", folder / "small.c", *needed]
    return prove(sources, [HERE, folder, RUNTIME_C], ["--unwind", str(turns)])


@pytest.mark.deep
@pytest.mark.usefixtures("program")
def test_an_answer_that_is_too_long_is_found(tmp_path: Path) -> None:
    """The check that keeps the room for the checksum, of a request about a tensor."""
    root = tmp_path / "runtime"
    shutil.copytree(RUNTIME_C, root)
    text = (root / "host/commands.c").read_text()
    wrong = text.replace("if (bytes > ANSWER_ROOM - host->answer_bytes)", "if (bytes > ANSWER_ROOM)")
    assert wrong != text
    (root / "host/commands.c").write_text(wrong)
    assert REFUTED in Harness(HERE / "commands.c").run("TINYML_HOST_PAYLOAD=16 COMMAND=3", root=root)


@pytest.mark.usefixtures("program")
def test_generated_c_of_a_small_model(tmp_path: Path) -> None:
    """NAME_run() for every input; a record with one output too many writes outside the arena."""
    said = generated(small(), tmp_path)
    assert PROVED in said, said[-2000:]
    assert REFUTED in generated(small(), tmp_path, ".outputs = 5", ".outputs = 9")


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("program")
def test_generated_c_of_a_small_convolution(tmp_path: Path) -> None:
    """The same with a window that moves; a record with rows too many reads and writes outside."""
    said = generated(small_conv(), tmp_path, turns=20)
    assert PROVED in said, said[-2000:]
    assert REFUTED in generated(small_conv(), tmp_path, ".out_h = 2", ".out_h = 9", turns=20)


def test_harnesses_say_what_they_prove() -> None:
    for harness in harnesses():
        assert harness.key("shapes"), harness.name
        assert harness.key("unwind").isdigit() or harness.name == "output_s8", harness.name  # it has no loops
        for name in harness.proves:
            assert (RUNTIME_C / name).is_file(), f"{harness.name} proves {name}, which is not there"


def test_evidence_knows_the_proofs() -> None:
    """`python -m tools.kernel_checks` lists them for the bundles."""
    assert json.loads(CHECKS.read_text(encoding="utf-8"))["proofs"] == kernel_checks.proofs()
