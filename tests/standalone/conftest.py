# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Skip tests on machines whose tools are missing; offer images in QEMU as devices for pytest-embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_embedded.log import DuplicateStdoutPopen

from tinyml import harness


@pytest.fixture(autouse=True)
def machine_is_here(request: pytest.FixtureRequest) -> None:
    """The tier requires Arm's tools only; without those for RISC-V, the other tests still run."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    board = harness.find_machine(parameters["machine"]).board if "machine" in parameters else None
    if board and (absent := [part.name for part in board.toolchain.missing()]):
        pytest.skip(f"{parameters['machine']}: no {', '.join(absent)}; see `tinyml doctor`")


@pytest.fixture
def start_image(msg_queue: Any, dut: Any) -> Iterator[Callable[[harness.Image], DuplicateStdoutPopen]]:
    """Start an image; from then on ``dut.expect`` sees its console. It is ended after the test."""
    started = []

    def start(image: harness.Image) -> DuplicateStdoutPopen:
        process = DuplicateStdoutPopen(msg_queue, cmd=harness.command(image), cwd=image.path.parent)
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(10)
