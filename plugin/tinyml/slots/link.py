# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From generated C to the bytes of a slot: compiled once, linked at each address."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tinyml.base.errors import ConfigError, ToolError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.cores.toolchains import ARM, RISCV, Toolchain
from tinyml.harness import tools
from tinyml.harness.generated import read_generated
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import SECTIONS, Options, library_units, link
from tinyml.slots.image import INTERFACE, Entries

SLOT_C = Path(__file__).parent / "c"
_VARIABLES = "tinyml: variables"  # how slot.ld begins its complaints


@dataclass(frozen=True)
class Linked:
    """Code and weights at one address, and where its functions begin, counted from the same place."""

    code: bytes
    entries: Entries
    core: int


class Objects:
    """A model and its kernels, compiled for slots of a target."""

    def __init__(self, files: Mapping[str, str], target: Target, optimize: str = "") -> None:
        """``files`` are those of the compiler, with NAME_slot.c in the place of NAME.c."""
        self.target = target
        self.toolchain = toolchain_for(target)
        self.compiler = tools.cross_compiler(self.toolchain)
        with tempfile.TemporaryDirectory(prefix="tinyml-slot-") as scratch:
            folder = Path(scratch)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            model = read_generated(folder)
            base = (*target.gcc_flags, *self.toolchain.compile_flags, *SECTIONS)
            options = Options(optimize=optimize)
            ours, includes, units = library_units(model, base, options)
            port = f'-DTINYML_PORT_HEADER="{model.name}_slot_port.h"'
            own = Unit(folder / f"{model.name}_slot.c", "model", (*ours, port), (folder, SLOT_C, *includes))
            library = Unit(SLOT_C / "library.c", "slot", ours, includes)
            self.objects = compile_all(self.compiler, [own, library, *units])

    def link(self, address: int, code_offset: int, has_reset: bool) -> Linked:
        """The code for its place, ``code_offset`` bytes after the start of a slot at ``address``."""
        with tempfile.TemporaryDirectory(prefix="tinyml-slot-") as scratch:
            image = Path(scratch) / "slot"
            arguments = [
                *self.target.gcc_flags,
                *("-nostartfiles", *self.toolchain.link_flags, f"-T{SLOT_C / 'slot.ld'}"),
                *("-Wl,--gc-sections", "-Wl,--build-id=none"),
                f"-Wl,--defsym=tinyml_slot_origin={address + code_offset:#x}",
                *("-Wl,-u,slot_entry_run", "-Wl,-u,slot_entry_reset", "-Wl,-u,slot_entry_test"),
                *map(str, self.objects),
                *("-lm", "-o", str(image)),
            ]
            try:
                link(self.compiler, arguments)
            except ToolError as error:
                if _VARIABLES in error.message:
                    raise UnsupportedError(
                        "this model needs a variable outside its arena and state, which slots do not have",
                        "an int8 or float32 model; on RISC-V the C library's functions for double keep one",
                    ) from None
                raise
            symbols = {name: value for value, name in tools.symbols(self.toolchain, image)}
            code = self._section(image, ".slot")
            facts = self._section(image, ".facts")
        interface, core = (int.from_bytes(facts[start : start + 4], "little") for start in (0, 4))
        assert interface == INTERFACE, "slot.h and slots/image.py have different interface numbers"
        thumb = 1 if self.toolchain is ARM else 0

        def entry(name: str) -> int:
            return (symbols[name] & ~1) - address + thumb

        reset = entry("slot_entry_reset") if has_reset else 0
        return Linked(code, Entries(entry("slot_entry_run"), reset, entry("slot_entry_test")), core)

    def _section(self, image: Path, name: str) -> bytes:
        path = self.compiler.path
        objcopy = str(path.with_name(path.name.removesuffix("gcc") + "objcopy"))
        out = image.with_name("section.bin")
        flags = ["--set-section-flags", f"{name}=alloc,load,contents"]  # .facts is not loaded otherwise
        command = [objcopy, "-O", "binary", "-j", name, *flags, str(image), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"objcopy cannot read {name}: {done.stderr.strip()}")
        return out.read_bytes()


def toolchain_for(target: Target) -> Toolchain:
    """The compiler for a target whose code can be placed in a slot."""
    if target.name.startswith("cortex-m"):
        return ARM
    if target.name == "riscv32":
        return RISCV
    raise ConfigError(
        f"there are no slots for target {target.name!r}", "cortex-m0, -m3, -m4, -m7, -m33, -m55 or riscv32"
    )
