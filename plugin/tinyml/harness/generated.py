# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A folder of generated C, as its summary (``<name>.json``) describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.harness.arena_check import Ranges, ranges_of
from tinyml.ir import DType
from tinyml.ir.row_order import RowOrder
from tinyml.settings.optimize import BALANCED


@dataclass(frozen=True)
class Port:
    """An input or output of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True)
class Generated:
    """What the harness needs to know about a compiled model."""

    folder: Path
    name: str
    target: str
    sha256: str  # of the model file, if it is known
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    runtime_sources: tuple[str, ...]
    cmsis_nn_sources: tuple[str, ...]
    arena_ranges: Ranges = ()  # for sanitizers
    compile_flag: str = BALANCED.flag  # for its own source and the kernels
    row_bytes: int = 0  # of the input, if the application feeds it in rows
    row_order: RowOrder | None = None  # in which its elements arrive, if it is not that of the model file
    npu: str = ""  # the accelerator that computes a part of it
    watched: bool = False  # it counts what it sees and decides
    adapts: str = ""  # what it learns on the device: a kind of <tinyml/adapt.h>
    callers_buffers: bool = False  # its run function takes the memory of inputs and outputs
    opened_by: str = ""  # the function that finds the model, if it is data for the player

    @property
    def source(self) -> Path:
        return self.folder / f"{self.name}.c"

    @property
    def entry(self) -> str:
        """The function that the harness measures."""
        return "feed_rows" if self.row_bytes else self.run_function

    @property
    def run_function(self) -> str:
        return "tinyml_player_run" if self.opened_by else f"{self.name}_run"

    @property
    def _model_define(self) -> str:
        return f"TINYML_HARNESS_MODEL={self.name}_model"

    @property
    def harness_defines(self) -> tuple[str, ...]:
        """What the harness has to know about the model before it runs."""
        found = [f"TINYML_HARNESS_OPEN={self.opened_by}" if self.opened_by else self._model_define]
        if self.row_bytes:
            bytes_ = sum(port.bytes for port in self.inputs)
            found += [f"TINYML_HARNESS_INPUT_BYTES={bytes_}u", f"TINYML_HARNESS_ROW_BYTES={self.row_bytes}u"]
        found += self._buffers_defines if self.callers_buffers else []
        found += [f"TINYML_HARNESS_WATCH={self.name}_watcher"] if self.watched else []
        if self.adapts:
            kind = f"TINYML_HARNESS_ADAPT_KIND=tinyml_adapt_{self.adapts}"
            found += [f"TINYML_HARNESS_ADAPT={self.name}_adapter", kind]
        return tuple(found)

    @property
    def _buffers_defines(self) -> list[str]:
        """Buffers one after the other, at odd multiples of an element: as a caller may have them."""
        types = [f"const {DType(port.dtype.name).c} *" for port in self.inputs]
        types += [f"{DType(port.dtype.name).c} *" for port in self.outputs]
        places, end = [], 0
        for port in (*self.inputs, *self.outputs):
            element = -(-end // port.dtype.itemsize) | 1
            places.append(element * port.dtype.itemsize)
            end = places[-1] + port.bytes
        return [
            f"TINYML_HARNESS_BUFFERS_BYTES={end}u",
            f"TINYML_HARNESS_RUN={self.run_function}",
            f"TINYML_HARNESS_PARAMETERS={','.join(types)}",
            f"TINYML_HARNESS_ARGUMENTS={','.join(f'(void *)&buffers[{place}]' for place in places)}",
        ]


def read_generated(folder: Path) -> Generated:
    """The model in ``folder``."""
    summaries = [summary for path in sorted(folder.glob("*.json")) if (summary := _summary(path))]
    if len(summaries) != 1:
        found = "no compiled model" if not summaries else f"{len(summaries)} compiled models"
        raise ConfigError(f"there is {found} in {folder}", "compile one into it: tinyml compile MODEL -o DIR")
    summary = summaries[0]
    return Generated(
        folder=folder,
        name=str(summary["name"]),
        target=str(summary["target"]),
        sha256=str(summary.get("sha256", "")),
        inputs=_ports(summary["inputs"]),
        outputs=_ports(summary["outputs"]),
        runtime_sources=tuple(summary["sources"].get("runtime", ())),
        cmsis_nn_sources=tuple(summary["sources"].get("cmsis-nn", ())),
        arena_ranges=ranges_of(summary) if "layers" in summary else (),
        compile_flag=str(summary.get("compile_flag", BALANCED.flag)),
        row_bytes=int(summary.get("rows", {}).get("row_bytes", 0)),
        row_order=RowOrder.of_summary(summary.get("rows", {})),
        npu="".join(part["accelerator"] for part in summary.get("npu", ())[:1]),
        watched="watch" in summary,
        adapts=str(summary.get("adapt", {}).get("kind", "")),
        callers_buffers=summary.get("buffers") == "caller",
        opened_by=str(summary.get("open", "")),
    )


def _summary(path: Path) -> Mapping[str, Any] | None:
    """The content of a summary; None for any other JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return content if isinstance(content, dict) and "sources" in content else None


def _ports(entries: Sequence[Mapping[str, Any]]) -> tuple[Port, ...]:
    return tuple(
        Port(str(entry["name"]), tuple(entry["shape"]), np.dtype(entry["dtype"])) for entry in entries
    )
