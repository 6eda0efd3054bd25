# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`runtime`, `zephyr-module` and `platformio-hook`: where an installation has what build systems load."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError
from tinyml.setup import installation
from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console


class RuntimeFolder(Verb):
    """Print the folder of the runtime, for build systems of your own.

    Its headers are in the folder `include`. With NAME.json, which `tinyml compile` wrote: the sources of the
    runtime that this model needs, one per line. For example:
    gcc -Igenerated -I"$(tinyml runtime)/include" -c generated/kws.c $(tinyml runtime generated/kws.json)
    """

    name = "runtime"
    help = "print the folder of the runtime, or the sources of it that a model needs"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("summary", nargs="?", type=Path, metavar="NAME.json", help="a compiled model")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        folder = installation.runtime()
        if args.summary is None:
            print(folder)
            return 0
        try:
            needed = json.loads(args.summary.read_text(encoding="utf-8"))["sources"]
            names, others = needed["runtime"], needed["cmsis-nn"]
        except (OSError, ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{args.summary} is no summary of a model", "NAME.json, which `tinyml compile` writes"
            ) from None
        for name in names:
            print(folder / name)
        if others:
            also = f"note: the model also needs these sources of CMSIS-NN: {', '.join(others)}"
            print(also, file=sys.stderr)
        return 0


class CmakePackage(Verb):
    """Print the folder of the CMake package, for projects that call find_package(tinyml).

    For example: cmake -B build -Dtinyml_DIR="$(tinyml cmake)", and in CMakeLists.txt
    find_package(tinyml REQUIRED), tinyml_add_model(kws models/kws.onnx TARGET cortex-m4).
    """

    name = "cmake"
    help = "print the folder of the CMake package, for find_package(tinyml)"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        pass

    def run(self, args: argparse.Namespace, console: Console) -> int:
        print(installation.cmake_package())
        return 0


class ZephyrModule(Verb):
    """Print the folder of the Zephyr module, for builds without west-tinyml in the west manifest.

    For example: EXTRA_ZEPHYR_MODULES="$(tinyml zephyr-module)" west build -b qemu_cortex_m3 app
    With --boards, the folder of the module with the emulated boards qemu_cortex_m4 and qemu_cortex_m7.
    """

    name = "zephyr-module"
    help = "print the folder of the Zephyr module"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--boards", action="store_true", help="the module with the emulated boards")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        folder = installation.zephyr_module()
        if folder is None:
            raise installation.incomplete()
        print(folder / "boards" if args.boards else folder)
        return 0


class PlatformioHook(Verb):
    """Print the script that compiles models in PlatformIO builds.

    In platformio.ini: extra_scripts = pre:FILE, and build_flags as the documentation shows. With the library
    in lib_deps this is not needed.
    """

    name = "platformio-hook"
    help = "print the path of the script for platformio.ini's extra_scripts"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        pass

    def run(self, args: argparse.Namespace, console: Console) -> int:
        print(installation.platformio_hook())
        return 0
