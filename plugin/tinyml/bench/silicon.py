# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Our estimates of cycles beside what others measured on silicon and published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tinyml.bench.measure import Row
from tinyml.bench.overview import core
from tinyml.bench.peers import KnownModel, peers
from tinyml.cost.cycles import MODELS

HEADING = """\
## Cycles: estimates beside published measurements

Rows called *estimate* are ours: QEMU counts how often each block of code is executed, and the timings of the
core weigh it, for memory without wait states. **All other rows were measured on silicon and published by
others** (MLPerf Tiny results: time multiplied by the stated clock); they include the wait states of flash.
The estimate with CMSIS-NN's kernels is there to be compared with a chip that ran the same kernels. Million
cycles per inference.
"""
KERNELS = {"auto": "this project, estimate", "cmsis-nn": "this project with CMSIS-NN's kernels, estimate"}


def markdown(rows: Iterable[Row]) -> str:
    """One table per core that we have estimates for."""
    estimates = [row for row in rows if row.cycles is not None and row.kernels in KERNELS]
    known = {model.key: model for model in peers().models.values()}
    keys = [key for key, model in known.items() if any(row.sha256 == model.sha256 for row in estimates)]
    parts = [HEADING]
    for target, model in MODELS.items():
        own = [row for row in estimates if row.machine == f"qemu-{target}"]
        if own:
            parts += [f"### {core(target)}\n", f"{_sentence(model.how)}\n", _table(target, own, keys, known)]
    return "\n".join(parts)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table(target: str, own: Sequence[Row], keys: Sequence[str], models: Mapping[str, KnownModel]) -> str:
    titles = (key.upper().replace("_", " ") for key in keys)
    lines = [f"| | {' | '.join(titles)} |", f"|---|{'---:|' * len(keys)}"]
    for kernels, name in KERNELS.items():
        by_model = {row.sha256: row.cycles for row in own if row.kernels == kernels}
        lines.append(_line(f"**{name}**", [by_model.get(models[key].sha256) for key in keys]))
    for entry in peers().silicon:
        if entry.core == target:
            name = f"{entry.name}, {entry.chip} ({entry.release}), published"
            lines.append(_line(name, [entry.cycles.get(key) for key in keys]))
    return "\n".join([*lines, ""])


def _line(name: str, cycles: Iterable[int | None]) -> str:
    cells = [f"{count / 1e6:.2f}" if count is not None else "" for count in cycles]
    return f"| {name} | {' | '.join(cells)} |"
