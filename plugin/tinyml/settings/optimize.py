# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model may spend: the choices of ``optimize:``, and what each of them means to the stages."""

from __future__ import annotations

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Narrow:
    """Other limits for chains whose bands have few positions and so cost many instructions."""

    worthwhile: float
    slack: float


@dataclass(frozen=True)
class Chaining:
    """Which chains of layers are computed in bands: how long, and how much of the arena they must save.

    Of chains and bands that need about the same memory, up to the part ``slack`` more, the shortest chain and
    the widest bands win, because they cost the fewest instructions.
    """

    longest: int
    worthwhile: float  # of the arena
    worthwhile_bytes: int
    slack: float
    side_rows: int  # of a band, at least, in chains with a side where bands cost much: see bands/join.py
    columns: int  # of the widest tensor in a band, at least, in chains along the width
    dear_columns: int  # the same where bands cost much
    loops_beside_vectors: bool  # generated loops in such chains, on cores with vectors: they cost more there
    if_narrow: Narrow


@dataclass(frozen=True)
class Goal:
    """A choice of ``optimize:``.

    Kernels whose instructions differ by less than the factor ``tie`` count as equal; the one with less memory
    wins. A kernel of CMSIS-NN must save the part ``worthwhile`` of a run, or it is not linked beside our own.
    ``slower``: how many times as long a layer may take if that makes the linked code smaller; 1: no kernel is
    chosen for its size. ``less_scratch`` is the same for layers at the peak of memory, if that makes the
    arena smaller. ``four_bits``: how many times as long a layer may take to store its weights in four bits,
    if they fit; layers that take longer may do so too as long as all of them add at most the part
    ``four_bits_more`` to a run. ``float16``: whether weights that are float16 numbers are stored as such,
    which takes half the flash and some instructions more. ``float16_sums``: whether kernels may add up
    products of such weights in float16, as ``arithmetic: float16`` allows. ``flag`` is the C compiler's, for
    the model's own source and the kernels.
    """

    name: str
    about: str
    tie: float
    slower: float
    chaining: Chaining | None
    flag: str
    less_scratch: float = 1
    four_bits: float = 1.5
    four_bits_more: float = 2 / 100
    worthwhile: float = 1 / 100
    float16: bool = True
    float16_sums: bool = False


BALANCED_CHAINING = Chaining(
    longest=5,
    worthwhile=1 / 16,
    worthwhile_bytes=1024,  # less than that is soon lost again in flash
    slack=1 / 16,
    side_rows=2,
    columns=32,
    dear_columns=128,
    loops_beside_vectors=False,
    if_narrow=Narrow(worthwhile=1 / 16, slack=1 / 16),
)

BALANCED = Goal(
    "balanced",
    "the fastest kernels, and bands of rows where they clearly save RAM",
    1.03,
    1,
    BALANCED_CHAINING,
    "-O2",
)

GOALS = {
    goal.name: goal
    for goal in (
        BALANCED,
        Goal(
            "speed",
            "the fastest kernels; no bands and no float16 weights, which cost instructions",
            1,
            1,
            None,
            "-O2",
            four_bits=1,
            worthwhile=0,
            float16=False,
        ),
        Goal(
            "size",
            "kernels with less code, at up to one and a half times the instructions of a layer; compiled "
            "with -Os",
            1.03,
            1.5,
            BALANCED_CHAINING,
            "-Os",
            four_bits=4,
        ),
        Goal(
            "ram",
            "bands of rows wherever they save RAM; at the peak, kernels with less working memory, at up to "
            "twice the instructions of a layer",
            1.03,
            1,
            Chaining(
                longest=24,
                worthwhile=1 / 64,
                worthwhile_bytes=64,
                slack=1 / 64,
                side_rows=1,
                columns=8,
                dear_columns=8,
                loops_beside_vectors=True,
                if_narrow=Narrow(worthwhile=1 / 8, slack=3 / 32),
            ),
            "-O2",
            less_scratch=2,
        ),
    )
}
"""Every choice of ``optimize:``, the default first."""


def find_goal(name: str, where: str = "") -> Goal:
    """The choice called ``name``; ``where`` starts the message if there is none."""
    try:
        return GOALS[name]
    except KeyError:
        start = f"{where}: " if where else ""
        raise ConfigError(
            f"{start}cannot optimize for {name!r}{did_you_mean(name, GOALS)}", f"one of: {', '.join(GOALS)}"
        ) from None
