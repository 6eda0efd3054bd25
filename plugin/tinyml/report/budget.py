# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks that a compiled model fits its memory, with a clearer message than the linker's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tinyml.base.errors import BudgetError, ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import short
from tinyml.settings.request_forms import BUDGETS, INSTRUCTIONS, parse_amount

SHOWN = 3  # layers that a message names
UNNAMED = "the limit"  # whose limit it is if nobody says so


@dataclass(frozen=True)
class Limit:
    """An amount of memory, or of instructions, and who sets it: "the board", an option's name."""

    bytes: int
    whose: str


Ways = Callable[[str, Limit], Sequence[str]]
"""Settings that need less of a kind of memory, as parts of a sentence: see ``ways_out``."""


def no_ways(kind: str, limit: Limit) -> Sequence[str]:
    """Where only a summary is known, nothing else can be compiled."""
    return ()


def parse_limit(text: str) -> tuple[str, Limit]:
    """``ram=64K`` or ``ram=64K,the board``: what is limited, and the limit."""
    kind, equals, rest = text.partition("=")
    if not equals or kind not in BUDGETS:
        raise ConfigError(f"{text!r} is not a limit", f"{'|'.join(BUDGETS)}=BYTES, for example ram=64K")
    amount, _, whose = rest.partition(",")
    return kind, Limit(parse_amount(kind, amount), whose or UNNAMED)


def check(
    summary: Mapping[str, Any],
    arena: Sequence[Limit] = (),
    ram: Sequence[Limit] = (),
    flash: Sequence[Limit] = (),
    weights_in_ram: bool = False,
    flash_bytes: int | None = None,
    ways: Ways = no_ways,
) -> None:
    """Raise BudgetError if a model, by its summary, exceeds a limit on its arena, RAM or flash.

    ``flash_bytes``: an estimate of constants and code; without one, only weights count. ``ways``: the
    settings with which the model would need less, for the advice.
    """
    for kind, limits in (("arena", arena), ("ram", ram), ("flash", flash)):
        what, needed = needs(kind, summary, weights_in_ram, flash_bytes)
        memory = "flash" if kind == "flash" else "RAM"
        for limit in limits:
            if needed > limit.bytes:
                found = f"{summary['name']}: {what} {needed:,} bytes of {memory}"
                raise BudgetError(
                    f"{found}, {limit.whose} allows {limit.bytes:,}{_heaviest(summary, memory)}",
                    _advice(summary, memory, weights_in_ram, limit.whose, ways(kind, limit)),
                )


def needs(
    kind: str, summary: Mapping[str, Any], weights_in_ram: bool = False, flash_bytes: int | None = None
) -> tuple[str, int]:
    """What needs a kind of memory (arena, ram or flash), as the start of a sentence, and how many bytes."""
    arena, state, weights = (int(summary[f"{part}_bytes"]) for part in ("arena", "state", "weights"))
    if kind == "arena":
        return "the arena needs", arena
    if kind == "flash":
        if flash_bytes is None:
            return "the weights need", weights
        return "weights, tables and code need about", flash_bytes
    if weights_in_ram:  # and in flash, from where they are copied at boot
        return "arena, state and weights need", arena + state + weights
    return "arena and state need", arena + state


def check_all(
    summary: Mapping[str, Any],
    limits: Iterable[tuple[str, Limit]],
    weights_in_ram: bool = False,
    flash_bytes: int | None = None,
    ways: Ways = no_ways,
    instructions: Callable[[], int] | None = None,
) -> None:
    """``check`` with limits as ``parse_limit`` gives them.

    ``instructions`` finds the most that a run can take (see ``tinyml bound``); called if there is a limit.
    """
    by_kind: dict[str, list[Limit]] = {kind: [] for kind in BUDGETS}
    for kind, limit in limits:
        by_kind[kind].append(limit)
    counted = by_kind.pop(INSTRUCTIONS)
    if counted and instructions is not None:
        _check_instructions(summary, counted, instructions())
    check(summary, **by_kind, weights_in_ram=weights_in_ram, flash_bytes=flash_bytes, ways=ways)


def _check_instructions(summary: Mapping[str, Any], limits: Iterable[Limit], most: int) -> None:
    for limit in limits:
        if most > limit.bytes:
            found = f"{summary['name']}: a run can take {most:,} instructions"
            raise BudgetError(
                f"{found}, {limit.whose} allows {limit.bytes:,}",
                "`tinyml bound` shows the layers; `optimize: speed`, a smaller model, or a larger budget "
                f"({limit.whose})",
            )


def _heaviest(summary: Mapping[str, Any], memory: str) -> str:
    """The largest layers, as the end of a sentence."""
    key, words = ("weights_bytes", "most of it") if memory == "flash" else ("live_bytes", "at its peak")
    layers = sorted(summary["layers"], key=lambda layer: -int(layer[key]))[:SHOWN]
    named = ", ".join(f"{short(layer['name'])} {layer[key]:,}" for layer in layers if layer[key])
    return f"; {words}: {named}" if named else ""


def _advice(
    summary: Mapping[str, Any], memory: str, weights_in_ram: bool, whose: str, priced: Sequence[str]
) -> str:
    """What to try for the memory that is short; a float model can also be quantised."""
    ways = list(priced)
    in_float = any(layer["macs"] and layer["kernel"].endswith("_f32") for layer in summary["layers"])
    if in_float and not any("quantize" in way for way in priced):
        ways.append("an int8 model instead of a float one (a quarter of the memory)")
    if memory == "flash":
        ways.append("a model with fewer weights")
    else:
        if weights_in_ram:
            ways.append("weights in flash (without `weights: ram`)")
        ways.append("a model with smaller inputs or fewer channels in these layers")
    if whose == UNNAMED:
        ways.append("a larger limit")
    elif "budget" in whose or whose.startswith(("custom_", "tinyml.yaml")):
        ways.append(f"a larger budget ({whose})")
    else:
        ways.append(f"a board or memory region with more {memory}")
    return ", or ".join([", ".join(ways[:-1]), ways[-1]])
