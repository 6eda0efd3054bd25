"""Devices for pytest-embedded: an image in QEMU whose console the ``dut`` fixture reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_embedded.log import DuplicateStdoutPopen

from tinyml import harness


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
