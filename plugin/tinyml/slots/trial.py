# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A slot image on bare-metal QEMU: opened by the device's own code, then run like any other model."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import Machine, find_machine
from tinyml.datasets.generated_samples import generated
from tinyml.harness.generated import read_generated
from tinyml.harness.objects import Unit
from tinyml.harness.program_build import (
    HARNESS_C,
    RUNTIME_C,
    RUNTIME_INCLUDE,
    Image,
    Options,
    assemble,
    base_flags,
    harness_units,
    port_sources,
)
from tinyml.harness.run import Result, execute
from tinyml.ir import Array
from tinyml.slots.link import SLOT_C
from tinyml.slots.pack import Packed, Slot, pack_compiled

ADDRESSES = {
    "qemu-cortex-m3": (0x200000, 0x300000),
    "qemu-cortex-m4": (0x200000, 0x300000),
    "qemu-cortex-m7": (0x200000, 0x300000),
    "qemu-cortex-m55": (0x20000, 0x50000),
    "qemu-riscv32": (0x82000000, 0x83000000),
}
"""Room for two slots on each machine, in memory that code can run from."""

SLOT_SOURCES = ("slot/slot.c", "slot/crc32.c", "slot/sync.c")
SELF_TEST_FAILED = "self-test: slot refused"  # what trial.c prints
SIGNATURES = "monocypher"  # the part of the footprint


@dataclass(frozen=True)
class Trust:
    """The key that signed a pack, and the library that checks it."""

    public_key: bytes
    monocypher: Path  # its folder src


def run_slot(
    packed: Packed,
    slot: str,
    on: str,
    samples: Sequence[Mapping[str, Array]],
    *,
    content: bytes | None = None,
    reset_before: Collection[int] = (),
) -> Result:
    """Put the image of a slot where it belongs on the machine called ``on`` and run it on ``samples``.

    ``content`` replaces the image there. A refused image is a ToolError with the number of the reason.
    """
    return _run(packed, slot, on, samples, content=content, reset_before=reset_before)


def open_slot(packed: Packed, slot: str, on: str, trust: Trust | None = None) -> Result:
    """The cost of tinyml_slot_open(), as that of one run; with ``trust``, it checks the signature."""
    return _run(packed, slot, on, generated(packed.compiled.graph, 1), opening=True, trust=trust)


def try_self_test(packed: Packed) -> str:
    """Run the self-test of a pack in an emulator of its core, if there is one; what came of it, in words.

    A pack whose test fails is a ToolError: every device would reject it. Addresses are those of the emulator;
    all else is as in the pack.
    """
    target = str(packed.compiled.summary["target"])
    name = next((name for name in ADDRESSES if find_machine(name).target.name == target), "")
    if not name:
        return f"self-test not run: there is no emulator for {target}"
    board = find_machine(name).board
    assert board is not None
    missing = [part.name for part in board.toolchain.missing()]
    if missing:
        return f"self-test not run: {', '.join(missing)} is not installed"
    first, second = ADDRESSES[name]
    if len(next(iter(packed.pack.images.values()))) > second - first:
        return f"self-test not run: the model is too large for {name}"
    there = pack_compiled(packed.compiled, (Slot("trial", first),), packed.facts.version)
    try:
        open_slot(there, "trial", name)
    except ToolError as error:
        if SELF_TEST_FAILED not in error.message:
            return f"self-test not run: {name} cannot run this model"
        raise ToolError(
            f"the model fails its self-test on {name}: it computes something else than the compiler expects",
            f"tinyml verify MODEL --on {name} shows where; --no-trial packs it all the same",
        ) from None
    return f"self-test passed on {name}"


def _run(
    packed: Packed,
    slot: str,
    on: str,
    samples: Sequence[Mapping[str, Array]],
    *,
    content: bytes | None = None,
    reset_before: Collection[int] = (),
    opening: bool = False,
    trust: Trust | None = None,
) -> Result:
    machine = find_machine(on)
    image = packed.pack.images[slot]
    with tempfile.TemporaryDirectory(prefix="tinyml-slot-") as scratch:
        folder = Path(scratch)
        (folder / f"{packed.compiled.name}.json").write_text(
            packed.compiled.files[f"{packed.compiled.name}.json"]
        )
        (folder / "slot.bin").write_bytes(image if content is None else content)
        address = int.from_bytes(image[4:8], "little")
        trial: tuple[str, ...] = (f"-DSLOT_ADDRESS={address:#x}", f"-DSLOT_BYTES={len(image)}")
        trial += ("-DSLOT_MEASURE_OPEN",) if opening else ()
        firmware = _firmware(machine, folder, trial, packed, trust)
        loaded = dataclasses.replace(firmware, loaded=(("slot.bin", address),))
        return execute(loaded, read_generated(folder), samples, reset_before=reset_before)


def _firmware(
    machine: Machine, folder: Path, trial: tuple[str, ...], packed: Packed, trust: Trust | None
) -> Image:
    options = Options()
    flags = ("-std=c11", *base_flags(machine, options), "-O2")
    tensors = f"-DTINYML_SLOT_TENSORS={len(packed.facts.inputs) + len(packed.facts.outputs)}"
    trial += (
        f"-DSLOT_ARENA_BYTES={max(packed.facts.arena_bytes, 1)}",
        f"-DSLOT_STATE_BYTES={packed.facts.state_bytes}",
        tensors,
    )
    includes: tuple[Path, ...] = (RUNTIME_INCLUDE, HARNESS_C)
    units = harness_units(flags, ("TINYML_HARNESS_OPEN=open_slot",), port_sources(machine))
    units += [Unit(RUNTIME_C / name, "slot", (*flags, tensors), includes) for name in SLOT_SOURCES]
    if trust is not None:
        trial += (f"-DSLOT_PUBLIC_KEY={','.join(map(str, trust.public_key))}",)
        includes += (trust.monocypher, trust.monocypher / "optional")
        sources = (
            RUNTIME_C / "slot" / "trust_monocypher.c",
            trust.monocypher / "monocypher.c",
            trust.monocypher / "optional" / "monocypher-ed25519.c",
        )
        units += [Unit(source, SIGNATURES, (*flags, tensors, "-w"), includes) for source in sources]
    units.append(Unit(SLOT_C / "trial.c", "harness", (*flags, *trial), includes))
    return assemble(units, machine, folder, options)
