# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure what the player costs: python -m tools.player_figures

Writes docs/PLAYER_FIGURES.md, and the section of docs/BENCHMARKS.md about the player.

It requires TINYML_MODELS, the cross compilers and QEMU. All numbers are instructions that QEMU counts, or
bytes, so they are the same in every run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.errors import UnsupportedError
from tinyml.bench import record
from tinyml.datasets.generated_samples import generated
from tinyml.harness.footprint import Footprint
from tinyml.harness.objects import Unit
from tinyml.harness.program_build import (
    HARNESS_C,
    RUNTIME_C,
    RUNTIME_INCLUDE,
    assemble,
    base_flags,
    port_sources,
)
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.player.kernels import CORE
from tinyml.player.playable import Playable
from tinyml.player.table import sources, table
from tinyml.slots.data import DataImage, data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version
from tools import benchmarks

PAGE = ROOT / "docs" / "PLAYER_FIGURES.md"
TINY = (
    ("keyword spotting", "mlperf_kws_int8.tflite"),
    ("anomaly detection", "mlperf_ad_int8.tflite"),
    ("image classification", "mlperf_resnet_int8.tflite"),
    ("visual wake words", "mlperf_vww_int8.tflite"),
    ("streaming wake word", "mlperf_strww_int8.tflite"),
)
MODELS = (*TINY, ("MCUNet", "mcunet_vww_int8.tflite"))
SMALL = (  # layers that compiled code has loops of its own for, on the Cortex-M4
    ("TCN with integers of ONNX", "dory_tcn_nemo.onnx"),
    ("keyword spotting from ONNX", "microkws_qdq.onnx"),
    ("activity recognition", "har_ashwin_int8.tflite"),
    ("streaming keywords, uint8", "d_espdl_stream_qop_u8.onnx"),
    ("streaming keywords, float", "espdl_stream_float.onnx"),
    ("vision transformer, int8", "d_tinyvit_qdq_s8.onnx"),
    ("autoencoder, float", "deeploy_ae1d_float.onnx"),
    ("noise reduction", "mlonmcu_rnnoise_int8.tflite"),
    ("text classification, float", "mlonmcu_textclass_float.tflite"),
    ("wake word of the samples", "samples/wake_word/model.onnx"),
    ("vibration of the samples, float", "samples/vibration/model.onnx"),
    ("decision trees of the samples", "samples/sensor_fusion/models/wine.onnx"),
)
CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "riscv32")
ARENA, STATE = 1024, 16
CHECKS = ("player/window.c", "player/nest.c")  # what rules of several kernels share

FIRMWARE = f"""
#include <tinyml/player.h>

TINYML_PLAYER_DEFINE(player, {ARENA}, {STATE});
extern const uint32_t image[];
int main(void);

int main(void)
{{
	return tinyml_player_open(&player, image, 65536) != 0 || player.model.run() != 0;
}}
"""
IMAGE = "#include <stdint.h>\nconst uint32_t image[4] __attribute__((aligned(16))) = {1};\n"


@dataclass(frozen=True)
class Played:
    """A model for one core, compiled and as data."""

    compiled: Compiled
    data: DataImage
    machine: str

    def instructions(self) -> tuple[int, int]:
        """Of a run: compiled and played, whose outputs are equal."""
        samples = generated(self.compiled.graph, 1)
        linked = harness.run_files(self.compiled.files, self.machine, samples)
        played = harness.run_files(play_files(self.data.content, self._target), self.machine, samples)
        assert linked.instructions
        assert played.instructions
        for ours, theirs in zip(linked.outputs, played.outputs, strict=True):
            assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours), self.machine
        return linked.instructions[0], played.instructions[0]

    def opening(self) -> int:
        files = play_files(self.data.content, self._target, True)
        found = harness.run_files(files, self.machine, generated(self.compiled.graph, 1))
        assert found.instructions
        return found.instructions[0]

    @property
    def _target(self) -> str:
        return harness.find_machine(self.machine).target.name


def played(model: Path, core: str) -> Played:
    compiled = compile_model(model, Options(target=core, kernels="portable"))
    return Played(compiled, data_image(compiled, Version(1)), f"qemu-{core}")


def firmware(kernels: Iterable[Playable], core: str = "cortex-m4") -> Footprint:
    """A linked firmware that opens and runs a pack; its parts are player, rules and kernels."""
    machine = harness.find_machine(f"qemu-{core}")
    chosen = list(kernels)
    flags = ("-std=c11", *base_flags(machine, harness.Options()), "-Os")
    includes = (RUNTIME_C, RUNTIME_INCLUDE, HARNESS_C)
    with tempfile.TemporaryDirectory(prefix="tinyml-player-") as scratch:
        folder = Path(scratch)
        for name, text in (("main.c", FIRMWARE), ("image.c", IMAGE), ("table.c", table(chosen))):
            (folder / name).write_text(text, encoding="utf-8")
        units = [
            Unit(folder / "main.c", "main", flags, includes),
            Unit(folder / "image.c", "image", flags, includes),
            Unit(folder / "table.c", "table", flags, includes),
        ]
        units += [Unit(RUNTIME_C / name, _part(name), flags, includes) for name in sources(chosen)]
        units += [Unit(HARNESS_C / name, "harness", flags, includes) for name in port_sources(machine)]
        footprint = assemble(units, machine, folder, harness.Options()).footprint
    assert footprint is not None
    return footprint


def _part(source: str) -> str:
    if source in CORE or source in CHECKS:
        return "player"
    return "rules" if source.startswith("player/") else "kernels"


def flash_rows(models: Iterable[Played]) -> Iterator[str]:
    found = firmware({kernel for model in models for kernel in model.data.kernels})
    player, rules, kernels, names = (
        found.part(part).flash for part in ("player", "rules", "kernels", "table")
    )
    ram = found.part("main").data + found.part("main").bss - ARENA - STATE
    yield "| | bytes |"
    yield "|---|---|"
    yield f"| player and verifier | {player:,} |"
    yield f"| rules and calls of the kernels, some of which do the work themselves | {rules:,} |"
    yield f"| the kernels | {kernels:,} |"
    yield f"| the table of kernels | {names:,} |"
    yield f"| all flash | {player + rules + kernels + names:,} |"
    yield f"| RAM beside arena and state | {ram:,} |"


def pack_rows(models: Iterable[tuple[str, Played]]) -> Iterator[str]:
    yield "| model | calls | bytes of the pack | more than its constants | instructions to open it |"
    yield "|---|---|---|---|---|"
    for title, model in models:
        size, constants = len(model.data.content), model.data.constants_bytes
        more = f"{100 * (size - constants) / constants:.1f} %"
        yield f"| {title} | {model.data.calls} | {size:,} | {more} | {model.opening():,} |"


def run_rows(folder: Path, cores: Iterable[str]) -> Iterator[str]:
    yield "| model | core | instructions compiled | played | more |"
    yield "|---|---|---|---|---|"
    for title, file in MODELS:
        for core in cores:
            name = core.replace("cortex-m", "Cortex-M").replace("riscv32", "RV32")
            try:
                linked, run = played(folder / file, core).instructions()
            except UnsupportedError:
                yield f"| {title} | {name} | | a layer has no kernel of the player | |"
                continue
            change = f"{100 * (run - linked) / linked:.2f}".replace("-0.00", "0.00")
            yield f"| {title} | {name} | {linked:,} | {run:,} | {change} % |"


def small_rows(folder: Path) -> Iterator[str]:
    yield "| model | calls | instructions compiled | played | more |"
    yield "|---|---|---|---|---|"
    for title, file in SMALL:
        model = played((ROOT if file.startswith("samples/") else folder) / file, "cortex-m4")
        linked, run = model.instructions()
        change = f"{100 * (run - linked) / linked:.2f}".replace("-0.00", "0.00")
        yield f"| {title} | {model.data.calls} | {linked:,} | {run:,} | {change} % |"


def page(folder: Path) -> str:
    models = [(title, played(folder / file, "cortex-m4")) for title, file in TINY]
    parts = {
        "flash": flash_rows(model for _, model in models),
        "packs": pack_rows(models),
        "runs": run_rows(folder, CORES),
        "small": small_rows(folder),
    }
    return TEXT.format(**{name: "\n".join(rows) for name, rows in parts.items()})


TEXT = """# What the player costs

<!-- Generated by `python -m tools.player_figures`: do not edit. -->

[The player](player.md) runs models that are data. All numbers are bytes, or instructions that QEMU counts.
GCC 12 compiled the code; kernels are the project's own, without CMSIS-NN.

## Flash and RAM

A firmware for Cortex-M4 with the kernels of the five models of MLPerf Tiny, compiled with `-Os` and linked:

{flash}

## Packs

For Cortex-M4. Opening a pack checks everything in it, down to every call; a signature is not part of it.

{packs}

## Runs

A run of a compiled model and of its pack with the same kernels. The outputs are equal in every bit.

{runs}

## Small models

Convolutions and dense layers are calls of one kernel either way. For other layers, compiled code has
loops whose extents, steps and factors the C compiler knows; the functions of the player read them from
a record. A call costs 30 to 100 instructions, and an element a few more than in compiled code, which
shows in small models. On the Cortex-M4:

{small}
"""


def main() -> int:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    folder = os.environ.get("TINYML_MODELS")
    if folder is None:
        print("TINYML_MODELS names the folder of the published models")
        return 1
    PAGE.write_text(page(Path(folder)), encoding="utf-8")
    kept = record.load(benchmarks.RECORD)
    benchmarks.PAGE.write_text(benchmarks.page(kept), encoding="utf-8")  # has some of these figures, too
    return 0


if __name__ == "__main__":
    sys.exit(main())
