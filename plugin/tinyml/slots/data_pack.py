# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model file as a pack without code: one image for each family of cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tinyml.base.errors import ConfigError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.slots import image
from tinyml.slots.container import Pack
from tinyml.slots.data import DataImage, data_image
from tinyml.slots.data_reading import is_data
from tinyml.slots.families import Family
from tinyml.slots.version import Version


@dataclass(frozen=True)
class Variant:
    """The image of a family, and the compiled model that it has."""

    family: Family
    compiled: Compiled
    image: DataImage


def _variant(
    path: Path, options: Options, family: Family, version: Version, key: image.Key | None
) -> Variant:
    compiled = compile_model(path, options)
    return Variant(family, compiled, data_image(compiled, version, key))


def pack_data(
    path: Path, options: Options, families: Sequence[Family], version: Version, key: image.Key | None = None
) -> tuple[Pack, tuple[Variant, ...]]:
    """From a model file to a pack that needs no addresses."""
    if options.npu:
        raise ConfigError("a model as data cannot use an NPU", "pack it with --npu none")
    if options.kernels == "cmsis-nn":
        raise ConfigError(
            "a model as data uses the kernels of the player, not CMSIS-NN", "pack it without --kernels"
        )
    if options.watch:
        raise ConfigError("a model as data has no counters (watch)", "pack it without watch")
    if options.adapt:
        raise ConfigError("a model as data does not learn (adapt)", "pack it without adapt")
    if options.arithmetic == "float16":
        raise ConfigError(
            "the player computes in float32: a model as data has no float16 sums (arithmetic)",
            "pack it without arithmetic",
        )
    variants = []
    for family in families:
        chosen = replace(options, target=family.target, kernels="portable")
        try:
            variants.append(_variant(path, chosen, family, version, key))
        except UnsupportedError:  # the player has fewer kernels for weights of four bits than the compiler
            in_bytes = replace(chosen, byte_weights=True)
            variants.append(_variant(path, in_bytes, family, version, key))
    return Pack({one.family.name: one.image.content for one in variants}), tuple(variants)


def holds_data(pack: Pack) -> bool:
    """Whether a pack has images without code, for families of cores."""
    return all(is_data(content) for content in pack.images.values())
