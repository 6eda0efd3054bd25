# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model takes in the image of a finished build, by the ELF file and the linker's map."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.bounds.elf import Elf, Section, read_elf
from tinyml.bounds.images import BuiltModel, built_models
from tinyml.report import facts
from tinyml.report.facts import Image, Report

_ROW = re.compile(
    r"^ (?!\.(?:debug|comment|ARM\.attributes))(?:[*.\w]\S*)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$"
)
_LIBRARY = re.compile(r"libtinyml(_\w+)?\.a\(")
CODE, CONSTANTS, VALUES, ZEROS = "code", "constants", "values", "zeros"
MODULE, KERNELS, CMSIS_NN = "", "_kernels", "_cmsis_nn"


def reports_of_build(folder: Path, name: str = "") -> list[Report]:
    """The reports that a Zephyr build wrote, with what its image has become."""
    return [_with_image(model) for model in built_models(folder, name, any_core=True)]


def _with_image(model: BuiltModel) -> Report:
    generated = model.generated
    page = generated.folder / f"{generated.name}_report.json"
    report = facts.load(page)
    elf = read_elf(model.image, any_core=True)
    owned = bytes_by_owner(elf, _map_of(model.image))
    of_model = f"_model_{generated.name}"
    kernels = [owned[library, kind] for library in (KERNELS, CMSIS_NN) for kind in (CODE, CONSTANTS, VALUES)]
    flash, ram = image_bytes(elf)
    return replace(
        report,
        image=Image(
            file=f"{model.image.parent.name}/{model.image.name}",
            constants_bytes=owned[of_model, CONSTANTS] + owned[of_model, VALUES],
            code_bytes=owned[of_model, CODE],
            kernels_bytes=sum(kernels),
            glue_bytes=sum(owned[MODULE, kind] for kind in (CODE, CONSTANTS, VALUES)),
            ram_bytes=sum(count for (_, kind), count in owned.items() if kind in (VALUES, ZEROS)),
            image_flash_bytes=flash,
            image_ram_bytes=ram,
        ),
    )


def _map_of(image: Path) -> str:
    try:
        return image.with_suffix(".map").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(
            f"{image.with_suffix('.map')} cannot be read: {error.strerror}", "build it again"
        ) from None


def bytes_by_owner(elf: Elf, linker_map: str) -> Counter[tuple[str, str]]:
    """Bytes by library of ours and kind, of what is loaded."""
    found: Counter[tuple[str, str]] = Counter()
    for address, count, file in _rows(linker_map):
        library = _LIBRARY.search(file)
        section = next((s for s in elf.sections if s.address <= address < s.address + s.bytes), None)
        if library and section is not None and count:
            found[library[1] or MODULE, kind_of(section)] += count
    return found


def kind_of(section: Section) -> str:
    if section.writable:
        return ZEROS if section.content is None else VALUES
    return CODE if section.code else CONSTANTS


def image_bytes(elf: Elf) -> tuple[int, int]:
    """Flash and RAM of the whole image. Initial values of variables are in both."""
    kinds: Counter[str] = Counter()
    for section in elf.sections:
        kinds[kind_of(section)] += section.bytes
    return kinds[CODE] + kinds[CONSTANTS] + kinds[VALUES], kinds[VALUES] + kinds[ZEROS]


def _rows(text: str) -> Iterator[tuple[int, int, str]]:
    """Address, bytes and file of what the linker kept; long names have a line of their own."""
    _, _, memory_map = text.partition("Linker script and memory map")
    for line in re.sub(r"^( \S+)\n(?=\s+0x)", r"\1", memory_map, flags=re.MULTILINE).splitlines():
        if row := _ROW.match(line):
            yield int(row[1], 16), int(row[2], 16), row[3]
