# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Skip tests on machines whose tools are missing; offer images in QEMU as devices for pytest-embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pytest_embedded.log import DuplicateStdoutPopen
from pytest_embedded.utils import Meta

from tinyml import harness
from tinyml.cores.targets import find_target


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
def start_image(
    msg_queue: Any, dut: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[harness.Image], DuplicateStdoutPopen]]:
    """Start an image; from then on ``dut.expect`` sees its console. It is ended after the test."""
    started = []
    logs = Meta(str(tmp_path_factory.mktemp("console")), {}, {})

    def start(image: harness.Image) -> DuplicateStdoutPopen:
        words = harness.command(image)
        process = DuplicateStdoutPopen(msg_queue, cmd=words, meta=logs, cwd=image.path.parent)
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(10)
