# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks that a compiled model fits its memory, with a clearer message than the linker's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyml.base.errors import BudgetError, ConfigError
from tinyml.base.naming import short
from tinyml.settings.model_forms import BUDGETS
from tinyml.settings.written import parse_bytes

SHOWN = 3  # layers that a message names


@dataclass(frozen=True)
class Limit:
    """An amount of memory and who sets it: "the board", an option's name."""

    bytes: int
    whose: str


def parse_limit(text: str) -> tuple[str, Limit]:
    """``ram=64K`` or ``ram=64K,the board``: what is limited, and the limit."""
    kind, equals, rest = text.partition("=")
    if not equals or kind not in BUDGETS:
        raise ConfigError(f"{text!r} is not a limit", f"{'|'.join(BUDGETS)}=BYTES, for example ram=64K")
    amount, _, whose = rest.partition(",")
    return kind, Limit(parse_bytes(amount), whose or "the limit")


def check(
    summary: Mapping[str, Any],
    arena: Sequence[Limit] = (),
    ram: Sequence[Limit] = (),
    flash: Sequence[Limit] = (),
    weights_in_ram: bool = False,
    flash_bytes: int | None = None,
) -> None:
    """Raise BudgetError if a model, by its summary, exceeds a limit on its arena, RAM or flash.

    ``flash_bytes``: an estimate of constants and code; without one, only weights count.
    """
    all_ram = summary["arena_bytes"] + summary["state_bytes"]
    parts = "arena and state need"
    if weights_in_ram:  # and in flash, from where they are copied at boot
        all_ram += summary["weights_bytes"]
        parts = "arena, state and weights need"
    for limits, what, needed, memory in (
        (arena, "the arena needs", summary["arena_bytes"], "RAM"),
        (ram, parts, all_ram, "RAM"),
        (flash, *_flash(summary, flash_bytes), "flash"),
    ):
        for limit in limits:
            if needed > limit.bytes:
                found = f"{summary['name']}: {what} {needed:,} bytes of {memory}"
                raise BudgetError(
                    f"{found}, {limit.whose} allows {limit.bytes:,}{_heaviest(summary, memory)}",
                    _advice(summary, memory, weights_in_ram, limit.whose),
                )


def _flash(summary: Mapping[str, Any], estimated_bytes: int | None) -> tuple[str, int]:
    """What needs flash, and how much."""
    if estimated_bytes is None:
        return "the weights need", int(summary["weights_bytes"])
    return "weights, tables and code need about", estimated_bytes


def check_all(
    summary: Mapping[str, Any],
    limits: Iterable[tuple[str, Limit]],
    weights_in_ram: bool = False,
    flash_bytes: int | None = None,
) -> None:
    """``check`` with limits as ``parse_limit`` gives them."""
    by_kind: dict[str, list[Limit]] = {kind: [] for kind in BUDGETS}
    for kind, limit in limits:
        by_kind[kind].append(limit)
    check(summary, **by_kind, weights_in_ram=weights_in_ram, flash_bytes=flash_bytes)


def _heaviest(summary: Mapping[str, Any], memory: str) -> str:
    """The largest layers, as the end of a sentence."""
    key, words = ("weights_bytes", "most of it") if memory == "flash" else ("live_bytes", "at its peak")
    layers = sorted(summary["layers"], key=lambda layer: -int(layer[key]))[:SHOWN]
    named = ", ".join(f"{short(layer['name'])} {layer[key]:,}" for layer in layers if layer[key])
    return f"; {words}: {named}" if named else ""


def _advice(summary: Mapping[str, Any], memory: str, weights_in_ram: bool, whose: str) -> str:
    """What to try for the memory that is short; a float model can also be quantised."""
    ways = []
    if any(layer["macs"] and layer["kernel"].endswith("_f32") for layer in summary["layers"]):
        ways.append("an int8 model instead of a float one (a quarter of the memory)")
    if memory == "flash":
        ways.append("a model with fewer weights")
    else:
        if weights_in_ram:
            ways.append("weights in flash (without `weights: ram`)")
        ways.append("a model with smaller inputs or fewer channels in these layers")
    own = "budget" in whose or whose.startswith(("custom_", "tinyml.yaml"))
    ways.append(f"a larger budget ({whose})" if own else f"a board or memory region with more {memory}")
    return ", or ".join([", ".join(ways[:-1]), ways[-1]])
