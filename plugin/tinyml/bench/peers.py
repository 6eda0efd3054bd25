# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What other runtimes need for the same models: the figures in ``peers.yaml``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class KnownModel:
    """A published model that figures exist for."""

    key: str
    title: str
    origin: str
    sha256: str
    output: str  # the reference's output for the pattern, as far as it was recorded


@dataclass(frozen=True)
class Figure:
    """One peer, one model, one machine. None: not measured."""

    peer: str
    note: str
    model: KnownModel
    machine: str
    instructions: int
    constants_bytes: int | None
    code_bytes: int | None
    ram_bytes: int | None


@dataclass(frozen=True)
class Silicon:
    """Cycles that others measured on a chip and published, by the key of a model."""

    name: str
    core: str
    chip: str
    release: str
    cycles: dict[str, int]


@dataclass(frozen=True)
class Peers:
    models: dict[str, KnownModel]  # by SHA-256
    figures: tuple[Figure, ...]
    sources: dict[str, str]
    silicon: tuple[Silicon, ...]

    def of(self, sha256: str, machine: str) -> list[Figure]:
        return [f for f in self.figures if f.model.sha256 == sha256 and f.machine == machine]


@cache
def peers() -> Peers:
    data: Any = yaml.safe_load((Path(__file__).parent / "peers.yaml").read_text(encoding="utf-8"))
    models = {
        key: KnownModel(key, m["title"], m["origin"], m["sha256"], str(m.get("output", "")))
        for key, m in data["models"].items()
    }
    figures = [
        Figure(
            peer["name"],
            entry.get("note", ""),
            models[key],
            entry["machine"],
            count,
            *(entry.get(size, {}).get(key) for size in ("constants_bytes", "code_bytes", "ram_bytes")),
        )
        for peer in data["peers"]
        for entry in peer["figures"]
        for key, count in entry["instructions"].items()
    ]
    return Peers(
        {model.sha256: model for model in models.values()},
        tuple(figures),
        {peer["name"]: peer["source"] for peer in data["peers"]},
        tuple(Silicon(**entry) for entry in data["silicon"]),
    )
