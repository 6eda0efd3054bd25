# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The simulated device of ``slot_sim*.c``, compiled under sanitizers."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import slot_images as fake
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler
from tinyml.player.kernels import KERNELS
from tinyml.player.table import sources as play_sources
from tinyml.player.table import table
from tinyml.setup.workspace import find_zephyr

SOURCES = sorted(Path(__file__).parent.glob("slot_sim*.c"))
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
ERRORS = fake.errors(Path(RUNTIME_INCLUDE) / "tinyml" / "slot.h")
PSA_SHIM = Path(__file__).parent / "psa_shim.c"
PSA_HEADER = Path("/usr/include/psa/crypto.h")
"""Debian's libmbedtls-dev has it, and Mbed TLS behind it."""


@dataclass(frozen=True)
class Trust:
    """How the device checks signatures: the adapter, libraries and sources behind it."""

    adapter: str  # "monocypher" or "psa"
    sources: tuple[Path, ...] = ()
    includes: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()


def with_monocypher(folder: Path) -> Trust:
    """``folder`` has its sources."""
    sources = (folder / "monocypher.c", folder / "optional" / "monocypher-ed25519.c")
    return Trust("monocypher", sources, (folder, folder / "optional"))


def with_psa_shim(folder: Path) -> Trust:
    """The real header of the PSA API; Monocypher does the work."""
    monocypher = with_monocypher(folder)
    attributes = with_mbed_tls().libraries  # inline functions of the header call the library in one case
    return Trust("psa", (*monocypher.sources, PSA_SHIM), monocypher.includes, attributes)


def with_mbed_tls() -> Trust:
    """Mbed TLS itself, which has no Ed25519."""
    return Trust("psa", libraries=("-lmbedcrypto",))


SMP_SIMULATOR = Path(__file__).parent / "smp_sim.c"
SMP_REQUESTS = Path(__file__).parents[2] / "zephyr_module" / "src" / "smp_requests.c"


def find_zcbor() -> Path | None:
    """That of TINYML_ZCBOR, or of a west workspace with the group ``smp``."""
    named, zephyr = os.environ.get("TINYML_ZCBOR"), find_zephyr()
    folder = Path(named) if named else zephyr.parent / "modules" / "lib" / "zcbor" if zephyr else None
    return folder if folder and (folder / "src" / "zcbor_decode.c").is_file() else None


def build_simulator(folder: Path, trust: Trust | None = None, zcbor: Path | None = None) -> Path:
    """With ``trust``, the device can check signatures; with zcbor, it is updated over MCUmgr's requests."""
    flags: tuple[str, ...] = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS)
    includes: tuple[Path, ...] = (Path(RUNTIME_INCLUDE), Path(RUNTIME_C) / "slot")
    sources = [path for path in sorted(Path(RUNTIME_C).glob("slot/*.c")) if "trust_" not in path.name]
    sources += sorted(Path(RUNTIME_C).glob("host/*.c"))
    kernels = [KERNELS["tinyml_play_fill"]]
    (folder / "play_kernels.c").write_text(table(kernels))
    sources += [folder / "play_kernels.c", Path(RUNTIME_C) / "player" / "slot_player.c"]
    sources += [Path(RUNTIME_C) / name for name in play_sources(kernels) if not name.startswith("slot/")]
    units = []
    if trust is not None:
        flags = (*flags, f"-DVERIFY=tinyml_slot_verify_{trust.adapter}")
        includes = (*includes, *trust.includes)
        units = [Unit(source, "library", ("-O2", "-w"), includes) for source in trust.sources]
        sources.append(Path(RUNTIME_C) / "slot" / f"trust_{trust.adapter}.c")
    simulator = list(SOURCES)
    if zcbor is not None:
        flags = (*flags, "-DSLOT_SIM_SMP")
        includes = (*includes, zcbor / "include", SMP_REQUESTS.parent)
        simulator = [path for path in SOURCES if path.name != "slot_sim_fuzz.c"]
        simulator += [SMP_SIMULATOR, SMP_REQUESTS]
        parts = ("common", "decode", "encode")
        library = ("-std=gnu11", "-O1", "-w", *SANITIZERS)
        units += [Unit(zcbor / "src" / f"zcbor_{part}.c", "library", library, includes) for part in parts]
    units += [Unit(source, "simulator", flags, includes) for source in [*simulator, *sources]]
    compiler = host_compiler()
    program = folder / "slot_sim"
    objects = [str(path) for path in compile_all(compiler, units)]
    libraries = trust.libraries if trust is not None else ()
    command = [str(compiler.path), *SANITIZERS, *objects, *libraries, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


@dataclass(frozen=True)
class Case:
    """What lies in a slot, where the slot is, and what the firmware has room for."""

    content: bytes
    address: int = fake.ADDRESS
    arena: int = fake.ARENA
    state: int = fake.STATE


def verdicts(simulator: Path, cases: Sequence[Case], key: bytes = b"") -> list[list[str]]:
    """The answers of tinyml_slot_open(): the error, how many functions ran, and what they gave."""
    data = key + b"".join(
        struct.pack("<4I", len(case.content), case.address, case.arena, case.state) + case.content
        for case in cases
    )
    command = [str(simulator), "check-signed" if key else "check"]
    done = subprocess.run(command, input=data, capture_output=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr.decode()
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert len(lines) == len(cases)
    return lines
