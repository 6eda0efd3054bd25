# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where a compiled model can run: the interface that comparisons need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from tinyml.harness.run import Result, run_files
from tinyml.ir import Array


class Place(ABC):
    """A machine or a board. ``name`` is used in messages."""

    name: str

    @abstractmethod
    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        """Build generated files (text by name), reset the state, run ``samples`` one after the other."""


class Standalone(Place):
    """The host, or bare-metal QEMU."""

    def __init__(self, machine: str) -> None:
        self.name = machine

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        return run_files(files, self.name, samples, reset_before={0})
