# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Families of cores: those that play the same image of a model.

A pack has an image for each family that it is made for. Kernels, layouts of weights and the memory plan
differ between families; the model is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target, find_target


@dataclass(frozen=True)
class Family:
    """``target`` is the one that images are compiled for; ``core`` is what they need: TINYML_SLOT_CORE_..."""

    name: str
    target: str
    core: int
    description: str


PLAIN = Family("plain", "generic", 0, "any core, plain C")
ARM = Family("arm", "cortex-m0", 1 << 0, "Cortex-M without DSP instructions")
DSP = Family("dsp", "cortex-m4", 1 << 3, "Cortex-M with DSP instructions")
HELIUM = Family("helium", "cortex-m55", 1 << 4, "Cortex-M with Helium")
RISCV = Family("riscv", "riscv32", 1 << 16, "32-bit RISC-V")
VECTORS = Family("vectors", "riscv32-zve32x", 1 << 22, "32-bit RISC-V with vectors of integers")

FAMILIES = {family.name: family for family in (PLAIN, ARM, DSP, HELIUM, RISCV, VECTORS)}


def family_of(target: Target) -> Family:
    """The family that a target plays fastest."""
    if target.mve:
        return HELIUM
    if target.dsp:
        return DSP
    if target.arm:
        return ARM
    if target.rvv:
        return VECTORS
    return RISCV if target.name == RISCV.target else PLAIN


def playable_by(target: Target) -> tuple[Family, ...]:
    """All families whose images a target can play, the fastest first."""
    own = family_of(target)
    lesser = {HELIUM: (DSP,), VECTORS: (RISCV,)}.get(own, ())
    return tuple(dict.fromkeys((own, *lesser, PLAIN)))


def parse_families(text: str) -> tuple[Family, ...]:
    """``cortex-m4,cortex-m55``, names of families, or ``all``."""
    if text == "all":
        return tuple(FAMILIES.values())
    words = [word.strip() for word in text.split(",") if word.strip()]
    found = [FAMILIES[word] if word in FAMILIES else family_of(find_target(word)) for word in words]
    if not found:
        raise ConfigError("--for names no core", "--for cortex-m4,cortex-m55, or --for all")
    return tuple(dict.fromkeys(found))


def choose(names: Sequence[str], target: Target) -> str:
    """Of the images with these names, the one that a target plays fastest."""
    for family in playable_by(target):
        if family.name in names:
            return family.name
    raise ConfigError(
        f"the pack has no image that {target.name} can play; it has {', '.join(names)}",
        f"pack the model again with --for {target.name} or --for all",
    )
