# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The counters of a watched model as C: the structure in its header, and what describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.emit.interface import Port
from tinyml.ir import DType
from tinyml.watch.plan import BINS, Classes, Values, WatchPlan

HEADER = "<tinyml/watch.h>"
SOURCE = "watch/watch.c"
PARTS_SOURCE = "watch/part.c"
"""Of a model whose input arrives in rows."""
CHANNELS_SOURCE = "watch/channels.c"
"""Of a model whose channels are counted one by one."""

VALUES_FLASH, CLASSES_FLASH, OUTPUT_FLASH, WATCH_FLASH = 60, 32, 8, 36
"""Bytes of the descriptions on a core with 32 bits."""

CODE_BYTES = {"cortex-m0": 1220, "riscv32": 1110}
USUAL_CODE_BYTES = 790
"""Bytes of the code that counts, linked with keyword spotting of MLPerf Tiny; tests hold them."""


@dataclass(frozen=True)
class Part:
    """An input or output."""

    member: str  # of struct NAME_watch
    values: list[c.Code] = field(default_factory=list)  # initialiser of a struct tinyml_watch_values
    classes: list[c.Code] = field(default_factory=list)  # initialiser of a struct tinyml_watch_classes
    fields: list[c.Code] = field(default_factory=list)  # of the member


@dataclass(frozen=True)
class WatchCode:
    """What the templates print."""

    plan: WatchPlan
    inputs: list[Part]
    outputs: list[Part]
    input_pointers: str
    output_pointers: str
    arguments: str  # of the run function
    channels: list[Part] = field(default_factory=list)  # of the first input
    channel_input: str = ""  # its address

    @property
    def ram_bytes(self) -> int:
        return self.plan.ram_bytes

    @property
    def most_runs(self) -> int:
        return self.plan.most_runs

    @property
    def version(self) -> int:
        return self.plan.version

    def sources(self, in_rows: bool) -> set[str]:
        """Of the runtime."""
        return {
            SOURCE,
            *((PARTS_SOURCE,) if in_rows else ()),
            *((CHANNELS_SOURCE,) if self.channels else ()),
        }

    @property
    def flash_bytes(self) -> int:
        """Of the descriptions; the code comes with the runtime."""
        parts = [VALUES_FLASH for _ in (*self.inputs, *self.channels)]
        parts += [OUTPUT_FLASH + (CLASSES_FLASH if part.classes else VALUES_FLASH) for part in self.outputs]
        return WATCH_FLASH + sum(parts)


def watch_code(
    name: str, plan: WatchPlan, inputs: Sequence[Port], outputs: Sequence[Port], outside: bool
) -> WatchCode:
    """``outside``: the run function has inputs and outputs as parameters."""
    seen = [_part(name, part, port) for part, port in zip(plan.inputs, inputs, strict=True)]
    made = [_part(name, part, port) for part, port in zip(plan.outputs, outputs, strict=True)]
    arguments = ", ".join(port.parameter for port in (*inputs, *outputs)) if outside else ""
    channels = [
        Part("", _code(_values(part, f"{name}_counted.channels[{place}]", inputs[0])))
        for place, part in enumerate(plan.channels)
    ]
    return WatchCode(
        plan,
        seen,
        made,
        _pointers(inputs, outside),
        _pointers(outputs, outside),
        arguments,
        channels,
        _pointers(inputs[:1], outside) if channels else "",
    )


def _pointers(ports: Sequence[Port], outside: bool) -> str:
    """The initialiser of an array of addresses."""
    return ", ".join(port.parameter if outside else port.address for port in ports) or "NULL"


def _part(name: str, part: Values | Classes, port: Port) -> Part:
    here = f"{name}_counted.{port.parameter}"
    if isinstance(part, Classes):
        return Part(port.parameter, classes=_code(_classes(part, here, port)), fields=_class_fields(part))
    fields = c.code(["uint32_t bins[TINYML_WATCH_BINS];"]) if part.edges else []
    return Part(port.parameter, _code(_values(part, here, port)), fields=fields)


def _code(members: Mapping[str, str]) -> list[c.Code]:
    return c.code(c.initializer(members, 2 * c.TAB))


def _values(part: Values, here: str, port: Port) -> dict[str, str]:
    if not part.edges:
        return {".bins": "NULL"}
    members: dict[str, str] = {
        ".bins": f"{here}.bins",
        ".elements": str(part.elements),
        ".stride": str(part.stride),
        ".edges": f"{{{', '.join(_integer(edge) for edge in part.edges)}}}",
    }
    if part.reference:
        members[".reference"] = f"{{{', '.join(map(str, part.reference))}}}"
    return members | {".type": port.c_enum, ".has_reference": c.boolean(bool(part.reference))}


def _integer(value: int) -> str:
    return "INT32_MIN" if value == -(1 << 31) else str(value)


def _classes(part: Classes, here: str, port: Port) -> dict[str, str]:
    score = f"tinyml_watch_{'logit' if part.logits else 'score'}"
    score += "_f32" if part.dtype is DType.FLOAT32 else ""
    members = {".score": score, ".scores": f"&{here}.scores"}
    if part.decisions:
        members[".decisions"] = f"{here}.decisions"
    if part.transitions:
        members[".transitions"] = f"{here}.transitions[0]"
    return members | {
        ".multiplier": f"{part.multiplier}u",
        ".zero_point": str(part.zero_point),
        ".classes": str(part.classes),
        ".type": port.c_enum,
    }


def _class_fields(part: Classes) -> list[c.Code]:
    lines = ["struct tinyml_watch_scores scores;"]
    lines += [f"uint32_t decisions[{part.classes}];"] if part.decisions else []
    if part.transitions:
        lines.append(f"uint8_t transitions[{part.classes}][{part.classes - 1}]; /* from, to another */")
    return c.code(lines)


def summary_of(watch: WatchCode, target: str) -> dict[str, Any]:
    """For the summary in JSON."""

    def described(part: Values | Classes) -> dict[str, Any]:
        if isinstance(part, Classes):
            return {"name": part.name, "classes": part.classes, "logits": part.logits}
        return {
            "name": part.name,
            "bins": BINS if part.edges else 0,
            "stride": part.stride,
            "reference": bool(part.reference),
        }

    return {
        "ram_bytes": watch.ram_bytes,
        "flash_bytes": watch.flash_bytes,  # descriptions, which are part of weights_bytes
        "code_bytes": CODE_BYTES.get(target, USUAL_CODE_BYTES),  # about
        "most_runs": watch.most_runs,
        "inputs": [described(part) for part in watch.plan.inputs],
        **({"channels": len(watch.plan.channels)} if watch.plan.channels else {}),
        "outputs": [described(part) for part in watch.plan.outputs],
    }
