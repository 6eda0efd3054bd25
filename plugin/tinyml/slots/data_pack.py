# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model file as a pack without code: one image for each family of cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tinyml.base.errors import ConfigError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.attention.heads import Heads
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.player.program import Refused, UnplayableError
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


def played(
    path: Path, options: Options, family: Family, version: Version, key: image.Key | None = None
) -> Variant:
    """In the first form that the player has kernels for: it has fewer for weights of four bits than the
    compiler, and none for attention whose number of keys is computed, but kernels for its parts.

    Another form is compiled only if it may help every layer that is refused. Layers that no form helps are
    named, and no others; else those of the form that has the fewest.
    """
    form = replace(options, target=family.target, kernels="portable")
    fewest: UnplayableError | None = None
    while True:
        try:
            return _variant(path, form, family, version, key)
        except UnplayableError as error:
            hopeless = [one for one in error.refused if _helped(one, form) == form]
            if hopeless and fewest is None:
                raise UnplayableError(hopeless) from None
            if fewest is None or len(error.refused) < len(fewest.refused):
                fewest = error
            if hopeless:
                raise fewest from None
            for one in error.refused:
                form = _helped(one, form)
        except UnsupportedError:
            if fewest is None:
                raise
            raise fewest from None


def _helped(refused: Refused, form: Options) -> Options:
    """The form in which a refused layer may have another kernel or be other layers; if none, the same."""
    small = refused.kernel.weight_bits < 8 or refused.kernel.weights_are_float16
    return replace(
        form,
        byte_weights=form.byte_weights or small,
        attention_apart=form.attention_apart or isinstance(refused.layer.op, Heads),
    )


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
    variants = tuple(played(path, options, family, version, key) for family in families)
    return Pack({one.family.name: one.image.content for one in variants}), variants


def holds_data(pack: Pack) -> bool:
    """Whether a pack has images without code, for families of cores."""
    return all(is_data(content) for content in pack.images.values())
