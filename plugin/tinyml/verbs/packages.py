# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`arduino`, `esp-idf`, `cmsis-pack`: a model as a package for other build systems."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base import naming, whole_files
from tinyml.base.errors import ConfigError
from tinyml.verbs.base import Verb, print_notes
from tinyml.verbs.output_files import check_suffix
from tinyml.verbs.settings import add_model_arguments, options_from

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.api.compiled import CompiledModel


SKETCH = ("init", "initVariant", "loop", "serialEvent", "setup", "yield")
"""Functions that a sketch defines, or may define."""


class _Packaged(Verb):
    """What the three have in common: a model is compiled and written with the runtime that it needs."""

    default_target = "generic"
    output = "DIR"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, verb="compile")
        parser.add_argument("-o", "--output", type=Path, metavar=self.output, help=f"default: {self.default}")
        parser.set_defaults(target=self.default_target)

    @property
    def default(self) -> str:
        return "tinyml_NAME"

    def place(self, compiled: CompiledModel) -> Path:
        return Path(self.default.replace("NAME", compiled.name))

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from dataclasses import replace

        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.projects.packages import package, sources_of
        from tinyml.setup.installation import runtime

        self.check(args)
        options = replace(options_from(args, args.target), cmsis_nn=False)
        compiled = build(as_model(args.model), options)
        sources = sources_of(compiled.files, compiled.summary, runtime())
        files = package(self.name, sources, compiled.summary, compiled.built.graph.labels)
        place = args.output or self.place(compiled)
        self.write(place, files)
        console.print(
            f"{compiled.name} for {options.target}: {compiled.arena_bytes + compiled.state_bytes:,} bytes of "
            f"RAM, {compiled.weights_bytes:,} bytes of weights -> {place}",
            markup=False,
            soft_wrap=True,
        )
        print_notes(console, compiled.notes)
        console.print(self.next_step(place), markup=False, soft_wrap=True)
        return 0

    def check(self, args: argparse.Namespace) -> None:
        """Refuse arguments that this kind of package has no use for, before anything is compiled."""

    def write(self, place: Path, files: dict[str, bytes]) -> None:
        if place.exists() and not self.is_ours(place):
            raise ConfigError(f"{place} already exists", "another folder: -o DIR")
        for path, content in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            whole_files.save(place / path, content)

    def is_ours(self, place: Path) -> bool:
        """Whether an earlier run of the command wrote the folder."""
        return False

    def next_step(self, place: Path) -> str:
        raise NotImplementedError


class Arduino(_Packaged):
    """Write a model as an Arduino library: a folder that the IDE takes.

    Put the folder into `libraries` of the sketchbook, or add it as a .zip in the IDE. The library has the
    model's C, the kernels that it needs and an example. Without --target, the C runs on any core.
    """

    name = "arduino"
    help = "write a model as an Arduino library"

    def check(self, args: argparse.Namespace) -> None:
        name = args.name or naming.model_name(args.model)
        if name in SKETCH:
            raise ConfigError(
                f"{name!r} cannot be a model's name in a sketch: {name}() is a function of Arduino's",
                f"--name {name}_model",
            )

    def is_ours(self, place: Path) -> bool:
        return (place / "library.properties").is_file()

    def next_step(self, place: Path) -> str:
        return f"Next: move {place} to the folder libraries of your sketchbook; it has an example"


class EspIdf(_Packaged):
    """Write a model as a component of ESP-IDF: a folder with CMakeLists.txt and idf_component.yml.

    Put the folder into `components` of your project; `idf.py build` compiles it. Without --target, the C runs
    on any core, Xtensa and RISC-V.
    """

    name = "esp-idf"
    help = "write a model as a component of ESP-IDF"

    def is_ours(self, place: Path) -> bool:
        return (place / "idf_component.yml").is_file()

    def next_step(self, place: Path) -> str:
        return f"Next: move {place} to the folder components of your project, and include its header"


class CmsisPack(_Packaged):
    """Write a model as a CMSIS-Pack, for Keil MDK, IAR and the CMSIS-Toolbox.

    The pack has one component, Machine Learning:Models:NAME, with the model's C and the kernels for the core.
    """

    name = "cmsis-pack"
    help = "write a model as a CMSIS-Pack"
    default_target = "cortex-m4"
    output = "FILE"

    @property
    def default(self) -> str:
        return "tinyml.NAME.VERSION.pack"

    def place(self, compiled: CompiledModel) -> Path:
        return Path(f"tinyml.{compiled.name}.{compiled.summary['version']}.pack")

    def check(self, args: argparse.Namespace) -> None:
        if args.output is not None:
            check_suffix(args.output, "a CMSIS-Pack", ".pack")

    def write(self, place: Path, files: dict[str, bytes]) -> None:
        from tinyml.projects.packages import archived

        whole_files.save(place, archived(files))

    def next_step(self, place: Path) -> str:
        return f"Next: cpackget add {place}, then choose the component Machine Learning:Models"
