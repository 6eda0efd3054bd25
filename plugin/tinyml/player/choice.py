# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which kernels a firmware with a player has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.cores.targets import Target
from tinyml.ops.framework.kernel import Library, kernel_table
from tinyml.player.kernels import ALWAYS, BY_NUMBER
from tinyml.player.playable import Playable

ALL = "all"


def operators() -> tuple[str, ...]:
    """Names of groups of kernels: the folders of the runtime that they are in."""
    return tuple(sorted({kernel.group for kernel in BY_NUMBER.values()} - {ALWAYS}))


def chosen(target: Target, words: Sequence[str], needed: Iterable[Playable] = ()) -> list[Playable]:
    """The kernels of groups (or ``all``) that a core can run, and those that are ``needed``."""
    groups = operators()
    for word in words:
        if word != ALL and word not in groups:
            raise ConfigError(
                f"there are no kernels called {word!r}{did_you_mean(word, groups)}", _advice(word, groups)
            )
    wanted = {ALWAYS, *(groups if ALL in words else words)}
    found = {k for k in BY_NUMBER.values() if k.group in wanted and runs_on(k, target)}
    return sorted(found | set(needed), key=lambda kernel: kernel.number)


def runs_on(kernel: Playable, target: Target) -> bool:
    """Whether the core has the instructions that a kernel uses."""
    makers = [
        one
        for kernels in kernel_table().values()
        for one in kernels
        if one.library is Library.PORTABLE and kernel.sources[0] in one.sources
    ]
    return not makers or any(one.runs_on(target) for one in makers)


def _advice(word: str, groups: Sequence[str]) -> str:
    allowed = f"{ALL}, {', '.join(groups)}, or the file of a model or pack"
    if "," in word:
        return f"name them one by one, as in: {' '.join(word.split(','))}; there are {allowed}"
    return allowed
