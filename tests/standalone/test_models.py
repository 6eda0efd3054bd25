# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Published models on every QEMU core, with both kernel libraries, against their goldens.

``Check`` in ``tests/support/goldens.py`` defines what must agree and how closely. Integer models run on
all of their samples and steps, float models on the first; the host runs all (``tests/host/test_models.py``).
RISC-V, which runs the same C as Cortex-M3, skips CMSIS-NN and large float models.

`make test` runs the portable kernels, which are chosen by default wherever they are the cheaper ones, each
model on one core: the kernels of each core have tests of their own. It runs a tenth on other cores, and a
tenth of RISC-V's, of CMSIS-NN's, and of the models in the record of costs, whose goldens
``test_benchmarks.py`` compares.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.support.goldens import Check, Published, feeds, in_order, published, resets
from tinyml import harness
from tinyml.base.errors import BudgetError
from tinyml.bench import record
from tinyml.emit.model import Provenance
from tinyml.ir import Graph
from tinyml.pipeline import Options, compile_graph
from tinyml.setup.workspace import find_cmsis_nn
from tools import benchmarks

ABSENT = pytest.mark.skip(reason="no published models here (TINYML_MODELS names their folder)")
RECORDED = {(row.sha256, row.machine) for row in record.load(benchmarks.RECORD).rows if row.kernels == "auto"}
TURNS = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55")
WITH_FPU = TURNS[2:]
LARGE_MACS = 2_000_000  # of a float model on a core that has no FPU


def mark(model: Published, machine: str, kernels: str) -> Any:
    """Which campaign a case belongs to, of which `make test` runs a tenth; nothing if it always runs."""
    if machine == "qemu-riscv32":
        return pytest.mark.tenth("RISC-V")
    if kernels == "cmsis-nn":
        return pytest.mark.tenth("CMSIS-NN")
    if (model.row["sha256"], machine) in RECORDED:
        return pytest.mark.tenth("recorded")
    return () if machine == core_of(model) else pytest.mark.tenth("other cores")


def core_of(model: Published) -> str:
    """The core on which a model always runs. They take turns, by the name of the model; large ones where
    arithmetic is in instructions."""
    cores = WITH_FPU if not model.is_int8 and int(model.row["macs"]) > LARGE_MACS else TURNS
    return cores[zlib.crc32(str(model).encode()) % len(cores)]


def cases() -> Iterator[Any]:
    """Model, machine and kernels."""
    for model in published():
        for machine in harness.CORES:
            riscv = machine == "qemu-riscv32"
            if riscv and not model.is_int8 and int(model.row["macs"]) > LARGE_MACS:
                continue
            for kernels in ("portable",) if riscv else ("portable", "cmsis-nn"):
                name = f"{model}-{machine}-{kernels}"
                yield pytest.param(model, machine, kernels, id=name, marks=mark(model, machine, kernels))


CASES = [*cases()] or [pytest.param(None, "", "", id="models", marks=ABSENT)]


@cache
def imported(model: Published) -> Graph:
    return model.graph(taps=True)


@pytest.mark.parametrize("model, machine, kernels", CASES)
def test_published_model(model: Published, machine: str, kernels: str) -> None:
    if kernels == "cmsis-nn" and find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    target = harness.find_machine(machine).target.name
    compiled = compile_graph(
        imported(model),
        "published",
        Provenance(model.path.name, model.row["sha256"], ""),
        Options(target=target, kernels=kernels),
    )
    if kernels == "cmsis-nn" and not compiled.summary["sources"]["cmsis-nn"]:
        pytest.skip("CMSIS-NN computes none of its layers, so this is what the portable kernels do")
    # Integers: every byte of every golden. Floats, which are slow without an FPU: the first.
    steps = model.steps() if model.is_int8 else model.steps()[:1]
    try:
        result = harness.run_files(
            compiled.files,
            machine,
            list(feeds(compiled.graph, steps)),
            reset_before=resets(steps),
        )
    except BudgetError as error:
        pytest.skip(f"too large for {machine}: {error.message.splitlines()[0]}")
    check = Check(model)
    for step, outputs in zip(steps, result.outputs, strict=True):
        check.add(step, in_order(compiled.graph, outputs), tapped=True)
    assert not check.problems, "\n".join(check.problems)
    if model.is_int8 and not model.ends_in_float_softmax:
        assert check.equal_share >= 0.99
