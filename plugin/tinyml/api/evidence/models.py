# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The models of a build, compiled again from their files."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bounds.images import BuiltModel
from tinyml.compare.check import Subject, subject
from tinyml.pipeline import Options


@dataclass(frozen=True)
class Source:
    """A model of a build: its file, and the options that the build compiled it with."""

    built: BuiltModel
    file: Path
    options: Options


@dataclass(frozen=True)
class Remade:
    """A model whose C in the build is, byte for byte, what its file and its options give."""

    built: BuiltModel
    model: Subject

    @property
    def name(self) -> str:
        return self.built.generated.name


def remade(source: Source) -> Remade:
    """Compile the model again; anything else than the C of the build is an error."""
    name = source.built.generated.name
    model = subject(source.file, source.options)
    for file, text in model.compiled.files.items():
        path = source.built.generated.folder / file
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            raise ConfigError(
                f"{file} in the build is not what this version makes of {source.file.name}: "
                f"there is no evidence about {name}",
                "build again with this version; and leave generated files as they are",
            )
    return Remade(source.built, model)
