# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Batches of random layers, compiled for a machine, run on it and compared with numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.random_layers.batch import Batch
from tests.support.any_plan import any_plan
from tests.support.layer_kinds import always_four_bits, same
from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_graph
from tinyml.player.program import UnplayableError
from tinyml.settings.optimize import GOALS
from tinyml.slots.data import data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

CHECKED = harness.Options(check_arena=True)
PLAYER = "player"
"""In place of a library: our own kernels, called by the player."""


@dataclass(frozen=True)
class Place:
    """A core, and whose kernels it runs."""

    machine: str
    kernels: str

    def __str__(self) -> str:
        return f"{self.machine}, {self.kernels}"


@dataclass
class Tally:
    """What became of some layers."""

    equal: int = 0
    kernels: Counter[str] = field(default_factory=Counter)  # that computed them
    wrong: dict[str, str] = field(default_factory=dict)  # what is wrong, by layer
    compared: int = 0  # float layers of the player, with compiled code on the same machine

    def add(self, other: Tally) -> None:
        self.compared += other.compared
        self.equal += other.equal
        self.kernels += other.kernels
        self.wrong |= other.wrong


@dataclass(frozen=True)
class Choices:
    """How a batch is compiled. Batches take turns: a goal chooses kernels, an alignment their loops."""

    goal: str
    alignment: int  # of tensors whose kernel does not ask for more
    least: int = 0  # weights of depthwise layers that are unpacked as a whole on cores with vectors

    @classmethod
    def of(cls, number: int) -> Choices:
        goals, alignments, least = list(GOALS), (16, 4, 1), (0, 1024)
        return cls(
            goals[number % len(goals)], alignments[number % len(alignments)], least[number % len(least)]
        )


def check(batch: Batch, place: Place, choices: Choices, refused: set[str] | None = None) -> Tally:
    """Run all layers in one image. If that fails as a whole, halves of it find the layers to blame.

    ``refused``: layers that the player has no kernel for on some core. More are added; all are left out,
    because the next core seldom plays them, and compiling a batch twice takes longer than running it.
    """
    refused = set() if refused is None else refused
    try:
        return _run(batch, place, choices, refused)
    except TinymlError as error:
        names = [node.name for node in batch.graph.nodes]
        if len(names) == 1:
            return Tally(wrong={names[0]: str(error)})
    tally = Tally()
    for half in (names[: len(names) // 2], names[len(names) // 2 :]):
        tally.add(check(batch.only(half), place, choices, refused))
    return tally


def _run(batch: Batch, place: Place, choices: Choices, refused: set[str]) -> Tally:
    target = harness.find_machine(place.machine).target.name
    kernels = "portable" if place.kernels == PLAYER else place.kernels
    options = Options(target=target, kernels=kernels, bands=False, optimize=choices.goal)
    if place.kernels == PLAYER:
        batch, compiled, files = _played(batch, options, choices, refused)
    else:
        compiled = _compile(batch, options, choices)
        files = compiled.files
    found = _outputs(batch, files, place.machine)
    tally = Tally(kernels=Counter(chosen.kernel.name for chosen in compiled.selected))
    for node in batch.graph.nodes:
        wrong = [name for name in node.outputs if not same(found[name], batch.expected[name])]
        tally.equal += not wrong
        for output in wrong:
            elements = int((found[output] != batch.expected[output]).sum())
            tally.wrong[node.name] = f"{elements} of {found[output].size} elements differ from numpy"
    if place.kernels == PLAYER:
        tally.add(_against_compiled(batch, found, place.machine, options, choices))
    return tally


def _outputs(batch: Batch, files: Mapping[str, str], machine: str) -> Mapping[str, Array]:
    checked = harness.Options(sanitize=True) if machine == "host" else CHECKED
    (found,) = harness.run_files(files, machine, [batch.inputs], options=checked).outputs
    return found


def _against_compiled(
    batch: Batch, played: Mapping[str, Array], machine: str, options: Options, choices: Choices
) -> Tally:
    """Float results of the player equal those of compiled code in every bit; integers equal numpy's."""
    floats = {
        node.name
        for node in batch.graph.nodes
        if any(batch.graph.tensors[name].dtype.is_float for name in node.outputs)
    }
    if not floats:
        return Tally()
    rest = batch.only(floats)
    compiled = _outputs(rest, _compile(rest, options, choices).files, machine)
    return Tally(
        compared=len(floats),
        wrong={
            node.name: "not equal to compiled code in every bit"
            for node in rest.graph.nodes
            if any(played[name].tobytes() != compiled[name].tobytes() for name in node.outputs)
        },
    )


def _compile(batch: Batch, options: Options, choices: Choices) -> Compiled:
    with any_plan(choices.alignment), always_four_bits(choices.least):
        return compile_graph(batch.graph, "layers", Provenance("layers", "0" * 64, ""), options)


def _played(
    batch: Batch, options: Options, choices: Choices, refused: set[str]
) -> tuple[Batch, Compiled, Mapping[str, str]]:
    """The layers of a batch that can be data, and a firmware that plays them."""
    names = {node.name for node in batch.graph.nodes}
    if names & refused:
        batch = batch.only(names - refused)
    compiled = _compile(batch, options, choices)
    try:
        image = data_image(compiled, Version(1, 0, 0, 0))
    except UnplayableError as error:
        refused.update(error.layers)
        return _played(batch, options, choices, refused)
    return batch, compiled, play_files(image.content, options.target)
