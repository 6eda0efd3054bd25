# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure what slots cost, and write the tables of docs/slots.md between their marks.

``python -m tools.slot_figures [--without-runs]``

It requires the cross compilers and QEMU. Rows of models that TINYML_MODELS does not have stay as they
are, and without Monocypher (TINYML_MONOCYPHER, or the group ``slots`` of the workspace) those of signatures.
GCC 12 gives the numbers in the page.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cores.targets import find_target
from tinyml.cores.toolchains import ARM
from tinyml.datasets.generated_samples import generated
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE
from tinyml.harness.tools import cross_compiler
from tinyml.pipeline import Options, compile_model
from tinyml.slots.image import Key
from tinyml.slots.keys import public_key, signing_key
from tinyml.slots.monocypher import find_monocypher
from tinyml.slots.pack import Packed, Slot, pack_compiled
from tinyml.slots.trial import ADDRESSES, SIGNATURES, Trust, open_slot, run_slot
from tinyml.slots.version import Version

PAGE = ROOT / "docs" / "slots.md"
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
CORES = ("cortex-m0", "cortex-m3", "cortex-m4")
PARTS = (
    ("`tinyml_slot_open()` and all checks, `-Os`", "-Os", ("slot", "crc32", "sync")),
    ("the same, `-O2`", "-O2", ("slot", "crc32", "sync")),
    ("two slots, updates, trials, `-Os`", "-Os", ("slots", "update", "marks", "flash")),
    ("requests of a computer (`receiver.c`), `-Os`", "-Os", ("receiver",)),
)
RUNS = (
    ("digits", DIGITS.name, ("cortex-m3", "cortex-m4", "cortex-m55", "riscv32")),
    ("MLPerf Tiny KWS", "mlperf_kws_int8.tflite", ("cortex-m3", "cortex-m4")),
    ("hey_jarvis (streaming)", "mww_hey_jarvis_v2_int8.tflite", ("cortex-m4",)),
    ("streaming convolutions (float)", "espdl_stream_float.onnx", ("cortex-m4",)),
    ("pose GRU (float)", "pose_gru_float.onnx", ("cortex-m4", "riscv32")),
)
OPENED = (("digits", DIGITS.name, "cortex-m3"), ("MLPerf Tiny KWS", "mlperf_kws_int8.tflite", "cortex-m4"))
STRUCTURES = (
    ("tinyml_slot", "a model in a slot (eight inputs and outputs)"),
    ("tinyml_slots", "two slots"),
    ("tinyml_update", "an update, while it lasts"),
    ("tinyml_receiver", "requests of a computer, with the update"),
)

FIRMWARE = Path(__file__).parent / "slot_firmware.c"


def linked_rows() -> Iterator[str]:
    yield f"| | {' | '.join(core.capitalize().replace('-m', '-M') for core in CORES)} |"
    yield "|---|---|---|---|"
    found = [linked_sizes(core) for core in CORES]
    for what in found[0]:
        yield f"| {what} | {' | '.join(f'{sizes[what]:,}' for sizes in found)} |"


def linked_sizes(core: str) -> dict[str, int]:
    """What slots add to a whole firmware, linked with newlib-nano and ``-Os``."""
    (text, data, bss), with_slots, with_texts = (
        linked(core, flags) for flags in ((), ("-DSLOTS",), ("-DSLOTS", "-DTEXTS"))
    )
    objects = sum(flash_bytes(core, "-Os", name) for name in LINKED[:-1])
    flash = with_slots[0] + with_slots[1] - text - data
    values = with_slots[1] - data
    return {
        "flash of a firmware with two slots, more than without": flash,
        "… of this the code of slots": objects,
        "… initial values of variables": values,
        "… the C library's functions for memory, and the flash driver of the measurement": flash
        - objects
        - values,
        "the texts of errors, if it prints them": sum(with_texts[:2]) - sum(with_slots[:2]),
        "RAM, without arena and state": with_slots[1] + with_slots[2] - data - bss,
    }


def linked(core: str, defines: tuple[str, ...]) -> tuple[int, int, int]:
    compiler = cross_compiler(ARM)
    sources = [RUNTIME_C / "slot" / f"{name}.c" for name in LINKED]
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "firmware"
        flags = ["-std=c11", "-Os", *find_target(core).gcc_flags, "-ffunction-sections", "-fdata-sections"]
        link = ["--specs=nosys.specs", "--specs=nano.specs", "-Wl,--gc-sections", "-Wl,--no-warnings"]
        words = [*flags, *defines, f"-I{RUNTIME_INCLUDE}", str(FIRMWARE), *map(str, sources), *link]
        subprocess.run([str(compiler.path), *words, "-o", str(program)], check=True, capture_output=True)
        return sizes_of(program)


LINKED = ("slot", "crc32", "sync", "slots", "update", "marks", "flash", "error_text")


def flash_rows() -> Iterator[str]:
    yield f"| | {' | '.join(core.capitalize().replace('-m', '-M') for core in CORES)} |"
    yield "|---|---|---|---|"
    for what, optimize, names in PARTS:
        cells = (f"{sum(flash_bytes(core, optimize, name) for name in names):,}" for core in CORES)
        yield f"| {what} | {' | '.join(cells)} |"


def flash_bytes(core: str, optimize: str, name: str) -> int:
    """Code and constants of an object file."""
    text, data, _ = object_sizes(core, optimize, RUNTIME_C / "slot" / f"{name}.c")
    return text + data


def object_sizes(core: str, optimize: str, source: Path) -> tuple[int, int, int]:
    """Code with constants, initialised and zeroed variables, as ``size`` prints them."""
    compiler = cross_compiler(ARM)
    flags = ("-std=c11", *find_target(core).gcc_flags, *ARM.compile_flags, optimize)
    (path,) = compile_all(compiler, [Unit(source, "slot", flags, (RUNTIME_INCLUDE,))])
    return sizes_of(path)


def sizes_of(path: Path) -> tuple[int, int, int]:
    compiler = cross_compiler(ARM)
    size = compiler.path.with_name(compiler.path.name.removesuffix("gcc") + "size")
    said = subprocess.run([str(size), str(path)], capture_output=True, text=True, check=True).stdout
    text, data, bss = said.splitlines()[1].split()[:3]
    return int(text), int(data), int(bss)


def memory_rows() -> Iterator[str]:
    yield "| RAM of | bytes |"
    yield "|---|---|"
    with tempfile.TemporaryDirectory() as name:
        for structure, what in STRUCTURES:
            source = Path(name) / f"{structure}.c"
            source.write_text(f"#include <tinyml/slot_receiver.h>\nchar it[sizeof(struct {structure})];\n")
            yield f"| `struct {structure}`: {what} | {object_sizes('cortex-m3', '-Os', source)[2]} |"


def run_rows(before: str) -> Iterator[str]:
    yield "| model | core | instructions linked in | in a slot | | bytes in a slot | more than linked in |"
    yield "|---|---|---|---|---|---|---|"
    for title, file, cores in RUNS:
        folder = DIGITS.parent if file == DIGITS.name else Path(os.environ.get("TINYML_MODELS", "."))
        for core in cores:
            start = f"| {title} | {core.replace('riscv32', 'RV32').replace('cortex-m', 'Cortex-M')} |"
            if (folder / file).is_file():
                yield f"{start} {comparison(folder / file, f'qemu-{core}')}"
            else:
                yield from (line for line in before.splitlines() if line.startswith(start))


def open_rows(before: str) -> Iterator[str]:
    yield "| model | core | opened with | instructions | stack | flash of all checks |"
    yield "|---|---|---|---|---|---|"
    monocypher = find_monocypher()
    for title, file, core in OPENED:
        folder = DIGITS.parent if file == DIGITS.name else Path(os.environ.get("TINYML_MODELS", "."))
        for what, signed in (("checksum", False), ("signature (Monocypher)", True)):
            start = f"| {title} | {core.replace('cortex-m', 'Cortex-M')} | {what} |"
            if (folder / file).is_file() and (monocypher or not signed):
                cost = opening(folder / file, f"qemu-{core}", monocypher if signed else None)
                yield f"{start} {cost}"
            else:
                yield from (line for line in before.splitlines() if line.startswith(start))


def opening(model: Path, machine: str, monocypher: Path | None) -> str:
    """Instructions, stack and flash (code of the checks, of the library and of the compiler's) at ``-O2``."""
    trust, key = None, None
    if monocypher is not None:
        with tempfile.TemporaryDirectory() as name:
            pem = Path(name) / "key.pem"
            pem.write_bytes(fixed_key())
            trust, key = Trust(public_key(pem), monocypher), signing_key(pem)
    found = open_slot(packed_for(model, machine, key), "a", machine, trust)
    assert found.instructions
    assert found.footprint
    flash = found.footprint.part("slot").flash + found.footprint.part(SIGNATURES).flash
    return f"{found.instructions[0]:,} | {found.stack_bytes:,} | {flash:,} |"


def fixed_key() -> bytes:
    """Always the same, so that a measurement can be repeated."""
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def packed_for(model: Path, machine: str, key: Key | None = None) -> Packed:
    target = harness.find_machine(machine).target.name
    compiled = compile_model(model, Options(name="model", target=target))
    slots = tuple(Slot(name, address) for name, address in zip("ab", ADDRESSES[machine], strict=True))
    return pack_compiled(compiled, slots, Version(1), key)


def comparison(model: Path, machine: str) -> str:
    packed = packed_for(model, machine)
    compiled = packed.compiled
    samples = generated(compiled.graph, 1)
    linked = harness.run_files(compiled.files, machine, samples, reset_before={0})
    found = run_slot(packed, "a", machine, samples, reset_before={0})
    assert linked.instructions
    assert found.instructions
    assert linked.footprint
    (old,), (new,) = linked.instructions, found.instructions
    size = len(packed.pack.images["a"])
    more = size - linked.footprint.total.flash
    change = f"{100 * (new - old) / old:+.2f}".replace("-0.00", "0.00").replace("+0.00", "0.00")
    return f"{old:,} | {new:,} | {change} % | {size:,} | {more:,} |"


def table_of(page: str, mark: str) -> str:
    """A table as the page has it: rows that cannot be measured here stay."""
    found = re.search(rf"<!-- slot_figures: {mark} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert found, mark
    return found[1]


def replaced(page: str, mark: str, rows: Iterator[str]) -> str:
    pattern = rf"(<!-- slot_figures: {mark} -->\n).*?(<!-- end -->)"
    assert re.search(pattern, page, re.DOTALL), mark
    table = "\n".join(rows)
    return re.sub(pattern, lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page, flags=re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description="measure what slots cost, for docs/slots.md")
    parser.add_argument("--without-runs", action="store_true", help="only bytes of flash and RAM")
    args = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    page = replaced(page, "flash", flash_rows())
    page = replaced(page, "linked", linked_rows())
    page = replaced(page, "memory", memory_rows())
    if not args.without_runs:
        page = replaced(page, "opening", open_rows(table_of(page, "opening")))
        page = replaced(page, "runs", run_rows(table_of(page, "runs")))
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
