# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Skip tests on machines whose tools are missing; offer images in QEMU as devices for pytest-embedded."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

import pytest
from pytest_embedded.app import App
from pytest_embedded.dut import Dut
from pytest_embedded.log import PexpectProcess

from tinyml import harness
from tinyml.cores.targets import find_target


class Started(NamedTuple):
    """An image that runs: its console (``dut.expect(...)``) and its process."""

    dut: Dut
    process: subprocess.Popen[bytes]


def machine_of(item: pytest.Item) -> str | None:
    """The machine that a test runs on: its parameter ``machine``, or that of a row of the record."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("machine") or getattr(parameters.get("row"), "machine", None)


def same_code(one: str, other: str) -> bool:
    """Whether the compiler writes the same C for two cores: it knows nothing of them that differs."""
    first, second = find_target(one), find_target(other)
    renamed = replace(first, name=other, description=second.description, gcc_flags=second.gcc_flags)
    return renamed == second


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cortex-M7 has the instructions of Cortex-M4 and gets the same C: a tenth of its tests."""
    if not same_code("cortex-m7", "cortex-m4"):
        return
    for item in items:
        if machine_of(item) == "qemu-cortex-m7":
            item.add_marker(pytest.mark.tenth("Cortex-M7"))


@pytest.fixture(autouse=True)
def machine_is_here(request: pytest.FixtureRequest) -> None:
    """The tier requires Arm's tools only; without those for RISC-V, the other tests still run."""
    name = machine_of(request.node)
    board = harness.find_machine(name).board if name else None
    if board and (absent := [part.name for part in board.toolchain.missing()]):
        pytest.skip(f"{name}: no {', '.join(absent)}; see `tinyml doctor`")


@pytest.fixture
def start_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[harness.Image], Started]]:
    """Start an image, whose console is a device of pytest-embedded. It is ended after the test.

    pyproject.toml keeps its plugin out: pytest would prepare all of its fixtures for each test of every tier.
    """
    with ExitStack() as ends:

        def start(image: harness.Image) -> Started:
            console = tmp_path_factory.mktemp("console") / "console.log"
            output = ends.enter_context(console.open("wb"))
            process = subprocess.Popen(
                harness.command(image), stdout=output, stderr=subprocess.STDOUT, cwd=image.path.parent
            )
            ends.callback(process.wait, 10)
            ends.callback(process.terminate)
            reader = PexpectProcess(ends.enter_context(console.open("rb")))
            return Started(Dut(reader, None, App(), str(console), "console"), process)

        yield start
