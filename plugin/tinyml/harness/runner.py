# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where a compiled model can run: the interface that comparisons need."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tinyml.cores.machines import find_machine
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.program_build import Image, Options, build
from tinyml.harness.run import Result, execute, run_files
from tinyml.ir import Array


class Runner(ABC):
    """A machine or a board. ``name`` is used in messages; ``board`` is Zephyr's name of a board."""

    name: str
    board: str = ""

    @abstractmethod
    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        """Build generated files (text by name), reset the state, run ``samples`` one after the other."""


class Standalone(Runner):
    """The host, or bare-metal QEMU. ``checked``: on the host, memory errors of the C end the run."""

    def __init__(self, machine: str, checked: bool = False, check_arena: bool = False) -> None:
        """``check_arena``: a layer that touches bytes of the arena that are not its own ends the run."""
        self.name = machine
        sanitize = checked and find_machine(machine).board is None
        self.options = Options(sanitize=sanitize, check_arena=check_arena)

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        return run_files(files, self.name, samples, reset_before={0}, options=self.options)


class _Built(Runner):
    """An image that is built already."""

    def __init__(self, name: str, image: Image, model: Generated) -> None:
        self.name, self.image, self.model = name, image, model

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        return execute(self.image, self.model, samples, reset_before={0})


@contextmanager
def built_once(place: Runner, files: Mapping[str, str]) -> Iterator[Runner]:
    """A place for many runs of these files: the host and QEMU build only once."""
    if not isinstance(place, Standalone):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        for name, text in files.items():
            (Path(scratch) / name).write_text(text, encoding="utf-8")
        model = read_generated(Path(scratch))
        yield _Built(place.name, build(model, find_machine(place.name), Path(scratch), place.options), model)
