# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model file as a pack: compiled, linked at every slot's address, described, tested and signed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.templates import render
from tinyml.cores.targets import find_target
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.player.program import STATE_ALIGNMENT
from tinyml.slots import image
from tinyml.slots.container import Pack
from tinyml.slots.golden import golden
from tinyml.slots.image_layout import Layout, lay_out
from tinyml.slots.link import Objects
from tinyml.slots.version import Version

MAX_NAME = 24  # bytes, in the pack's table


@dataclass(frozen=True)
class Slot:
    """A slot of a device; ``bytes`` is None if its size is unknown."""

    name: str
    address: int
    bytes: int | None = None


@dataclass(frozen=True)
class Packed:
    """A pack, and what went into it."""

    pack: Pack
    facts: image.Facts
    compiled: Compiled


def pack_model(
    path: Path, options: Options, slots: tuple[Slot, ...], version: Version, key: image.Key | None = None
) -> Packed:
    """From a model file to a pack for ``slots``."""
    compiled = compile_model(path, options)
    return pack_compiled(compiled, slots, version, key)


def pack_compiled(
    compiled: Compiled,
    slots: tuple[Slot, ...],
    version: Version,
    key: image.Key | None = None,
    optimize: str = "",
) -> Packed:
    """A compiled model, with inputs and outputs in its arena, as a pack."""
    _check(slots)
    if "rows" in compiled.summary:
        raise ConfigError(
            "a model in a slot cannot take its input in rows (io rows)",
            "io arena, or no `io:` in tinyml.yaml",
        )
    if compiled.watch is not None:
        raise ConfigError("a model in a slot has no counters (watch)", "pack it without watch")
    if compiled.adapt is not None:
        raise ConfigError("a model in a slot does not learn (adapt)", "pack it without adapt")
    layout = lay_out(compiled)
    target = find_target(str(compiled.summary["target"]))
    objects = Objects(slot_files(compiled, layout), target, optimize)
    images = {}
    facts = facts_of(compiled, layout, version)
    for slot in slots:
        offset = image.code_offset(facts)
        linked = objects.link(slot.address, offset, bool(layout.variables))
        facts = facts_of(compiled, layout, version, linked.core)
        content = image.build(facts, slot.address, linked.entries, linked.code, key)
        if slot.bytes is not None and len(content) > slot.bytes:
            raise ConfigError(
                f"the pack needs {len(content):,} bytes, and slot {slot.name} has {slot.bytes:,}",
                "a larger partition, or a smaller model",
            )
        images[slot.name] = content
    return Packed(Pack(images), facts, compiled)


def slot_files(compiled: Compiled, layout: Layout) -> dict[str, str]:
    """The generated files, changed for a slot."""
    name = compiled.name
    context: dict[str, Any] = {
        "name": name,
        "states": layout.variables,
        "alignment": STATE_ALIGNMENT,
        **golden(compiled, layout),
    }
    files = {file: text for file, text in compiled.files.items() if file != f"{name}.c"}
    files[f"{name}_slot.c"] = compiled.files[f"{name}.c"] + render("slots", "model_slot.c.j2", context)
    files[f"{name}_slot_port.h"] = render("slots", "slot_port.h.j2", context)
    return files


def _check(slots: tuple[Slot, ...]) -> None:
    if not slots:
        raise ConfigError("a pack needs the address of at least one slot", "--slots a=0x60000,b=0x70000")
    for slot in slots:
        if slot.address % image.ALIGNMENT or not 0 <= slot.address < 2**32:
            raise ConfigError(
                f"slot {slot.name} cannot start at {slot.address:#x}",
                f"a 32-bit address that is a multiple of {image.ALIGNMENT}",
            )
        if not slot.name or len(slot.name.encode()) > MAX_NAME:
            raise ConfigError(f"{slot.name!r} cannot name a slot", f"1 to {MAX_NAME} bytes")
    for what in ([slot.name for slot in slots], [slot.address for slot in slots]):
        if len(set(what)) != len(what):
            raise ConfigError("two slots have the same name or address", "--slots a=0x60000,b=0x70000")


def facts_of(compiled: Compiled, layout: Layout, version: Version, core: int = 0) -> image.Facts:
    return image.Facts(
        name=compiled.name,
        version=version,
        sha256=bytes.fromhex(str(compiled.summary["sha256"])),
        core=core,
        arena_bytes=compiled.plan.arena_bytes,
        arena_alignment=STATE_ALIGNMENT,
        state_bytes=layout.state_bytes,
        state_alignment=STATE_ALIGNMENT,
        inputs=layout.inputs,
        outputs=layout.outputs,
    )
