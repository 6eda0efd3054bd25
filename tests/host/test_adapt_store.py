# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two copies of what was learnt in simulated flash: power fails at every write and erase."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.slot_simulator import ENVIRONMENT
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler

SIMULATOR = Path(__file__).parents[1] / "support" / "adapt_store_sim.c"
FLASHES = [("1", "256"), ("4", "512"), ("8", "0"), ("16", "128"), ("32", "256")]
"""Bytes of write and erase units; 0: erase units of different sizes."""
VALUES = 53 + 20
SEAL = 16


def build(folder: Path, store: Path = Path(RUNTIME_C) / "adapt" / "store.c") -> Path:
    flags = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS)
    includes = (Path(RUNTIME_INCLUDE), Path(RUNTIME_C) / "adapt")
    sources = (SIMULATOR, store, Path(RUNTIME_C) / "adapt" / "stored.c")
    compiler = host_compiler()
    objects = compile_all(compiler, [Unit(source, "store", flags, includes) for source in sources])
    program = folder / "adapt_store_sim"
    subprocess.run([str(compiler.path), *SANITIZERS, *map(str, objects), "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("store"))


def simulate(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *words], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )


@pytest.mark.parametrize("unit,erase", FLASHES)
def test_power_fails_at_every_write_and_erase(simulator: Path, unit: str, erase: str) -> None:
    done = simulate(simulator, "cuts", unit, erase)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    writes = -(-VALUES // int(unit)) + -(-SEAL // int(unit))
    erases = 512 // int(erase) if erase != "0" else 5
    assert [int(line.split()[0]) for line in lines[:-1]] == 4 * [writes + erases]
    assert lines[-1] == "fine"


@pytest.mark.parametrize("unit,erase", FLASHES)
def test_faults_damage_and_flash_that_cannot_be(simulator: Path, unit: str, erase: str) -> None:
    done = simulate(simulator, "faults", unit, erase)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("fine\n")


BROKEN = {
    "writes the newer copy": ("newest == 0 ? 1 : 0", "newest == 0 ? 0 : 1"),
    "takes the older copy": ("newest->number) > 0", "newest->number) < 0"),
    "does not check values": ("return ~crc == header.crc;", "return true;"),
    "writes without erasing": ("copy->flash->erase(copy->flash->context, at, unit) != 0", "unit == 0u"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_simulator_finds_what_is_broken(tmp_path: Path, what: str) -> None:
    old, new = BROKEN[what]
    text = (Path(RUNTIME_C) / "adapt" / "store.c").read_text()
    assert text.count(old) == 1
    broken = tmp_path / "store.c"
    broken.write_text(text.replace(old, new))
    program = build(tmp_path, broken)
    assert any(simulate(program, mode, "4", "512").returncode != 0 for mode in ("cuts", "faults"))
