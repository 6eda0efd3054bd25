"""Does a compiled model fit the memory it was given? Said before a linker says it in its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyml.errors import BudgetError

SHOWN = 3  # layers that a message names


@dataclass(frozen=True)
class Limit:
    """An amount of memory and whose it is: "the board", an option's name."""

    bytes: int
    whose: str


def check(
    summary: Mapping[str, Any],
    arena: Sequence[Limit] = (),
    ram: Sequence[Limit] = (),
    flash: Sequence[Limit] = (),
) -> None:
    """Refuse a model, by its summary, that goes over a limit on its arena, all its RAM or its flash."""
    all_ram = summary["arena_bytes"] + summary["state_bytes"]
    for limits, what, needed, memory in (
        (arena, "the arena needs", summary["arena_bytes"], "RAM"),
        (ram, "arena and state need", all_ram, "RAM"),
        (flash, "the weights need", summary["weights_bytes"], "flash"),
    ):
        for limit in limits:
            if needed > limit.bytes:
                found = f"{summary['name']}: {what} {needed} bytes of {memory}"
                heaviest = f"; most of it: {_heaviest(summary)}" if memory == "flash" else ""
                raise BudgetError(f"{found}, {limit.whose} allows {limit.bytes}{heaviest}", _advice(summary))


def _heaviest(summary: Mapping[str, Any]) -> str:
    layers = sorted(summary["layers"], key=lambda layer: -int(layer["weights_bytes"]))[:SHOWN]
    return ", ".join(
        f"{layer['name']} {layer['weights_bytes']}" for layer in layers if layer["weights_bytes"]
    )


def _advice(summary: Mapping[str, Any]) -> str:
    """A float model has one more way out than an integer one."""
    smaller = "a smaller model or input, or a board with more memory"
    is_float = any(layer["macs"] and layer["kernel"].endswith("_f32") for layer in summary["layers"])
    return (
        f"an int8 model instead of a float one (a quarter of the memory), {smaller}" if is_float else smaller
    )
