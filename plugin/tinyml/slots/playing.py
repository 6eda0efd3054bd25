# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A pack without code on this machine or in QEMU: played by the device's own code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import find_machine
from tinyml.cores.targets import Target
from tinyml.harness.program_build import Options
from tinyml.harness.run import Result, run_files
from tinyml.harness.runner import Runner, Standalone
from tinyml.ir import Array, Graph, Quant, Tensor
from tinyml.slots import container
from tinyml.slots.container import SUFFIX as SUFFIX
from tinyml.slots.data_pack import holds_data
from tinyml.slots.data_reading import DataModel, ReadPort, read_data
from tinyml.slots.families import choose
from tinyml.slots.play import play_files, summary


@dataclass(frozen=True)
class Played:
    """The image of a pack that a machine plays, and what it says."""

    machine: str
    content: bytes
    model: DataModel

    @property
    def files(self) -> dict[str, str]:
        return play_files(self.content, find_machine(self.machine).target.name)

    def run(self, samples: Sequence[Mapping[str, Array]], *, reset_before: Collection[int] = (0,)) -> Result:
        return run_files(self.files, self.machine, samples, reset_before=reset_before)

    def profile(self, samples: Sequence[Mapping[str, Array]]) -> Result:
        """The same with the cost of each layer."""
        return run_files(self.files, self.machine, samples, reset_before={0}, options=Options(profile=True))

    def graph(self) -> Graph:
        """Inputs and outputs without anything between them: enough to read samples and print results."""
        tensors = {port.name: _tensor(port) for port in (*self.model.inputs, *self.model.outputs)}
        names = (
            tuple(port.name for port in self.model.inputs),
            tuple(port.name for port in self.model.outputs),
        )
        return Graph(self.model.name, tensors, (), *names)


def summary_of(played: Played) -> dict[str, Any]:
    """What a benchmark needs to know about the image."""
    return summary(played.model, played.model.name, find_machine(played.machine).target.name)


class Player(Runner):
    """Plays a pack where a comparison runs ``model``; what else a search for causes runs is compiled."""

    def __init__(self, played: Played, model: Mapping[str, str]) -> None:
        self.played, self.model = played, model
        self.name = f"{played.machine} (played)"

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        if files is self.model:
            return self.played.run(samples)
        return Standalone(self.played.machine).run(files, samples)


def played_on(path: Path, machine: str) -> Played:
    """The image of a pack for a machine."""
    _, content = image_for(path, find_machine(machine).target)
    return Played(machine, content, read_data(content))


def image_for(path: Path, target: Target) -> tuple[str, bytes]:
    """The family of the image that a core plays fastest, and the image."""
    pack = container.load(path)
    if not holds_data(pack):
        raise ConfigError(
            f"{path} has code for slots of a device, which does not run here",
            "a pack without code: tinyml pack MODEL --data -o FILE",
        )
    family = choose(tuple(pack.images), target)
    return family, pack.images[family]


def _tensor(port: ReadPort) -> Tensor:
    quant = Quant((port.scale,), (port.zero_point,)) if port.scale else None
    return Tensor(port.name, port.shape, port.dtype, quant)
