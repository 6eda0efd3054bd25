# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count the instructions of every layer of the published models: what ``tools.fit_costs`` fits.

``python -m tools.layer_counts [--on qemu-cortex-m4,...]``

The models are those in the folder ``TINYML_MODELS``. Each is built and run on the emulated cores, with the
built-in kernels alone and, where the compiler then chooses other kernels, with CMSIS-NN. The counts go into
benchmarks/layer_counts.json after each model; counts that are there already are not taken again, unless the
model or its kernels have changed (``--again``: all). It takes about an hour.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.cost.cycles import Cycles, run_files
from tinyml.datasets import arrays
from tinyml.harness.footprint import CMSIS_NN, LIBRARY, MODEL, RUNTIME
from tinyml.ir import Shape
from tinyml.pipeline import Compiled, Options, compile_model

RECORD = ROOT / "benchmarks" / "layer_counts.json"
ARM = ("qemu-cortex-m4", "qemu-cortex-m3", "qemu-cortex-m55", "qemu-cortex-m0", "qemu-cortex-m7")
"""The machines on which CMSIS-NN competes."""
MACHINES = (*ARM, "qemu-riscv32", "qemu-riscv32-zve32x")
NAME = "model"


@dataclass(frozen=True)
class LayerCount:
    """One layer: its kernel, and what it took."""

    step: int
    kernel: str
    instructions: int
    cycles: int | None


@dataclass(frozen=True)
class Counted:
    """One model on one machine. ``cmsis_nn``: whether the compiler could choose from CMSIS-NN."""

    model: str
    sha256: str
    machine: str
    cmsis_nn: bool
    instructions: int
    kernels_bytes: int
    glue_bytes: int
    library_bytes: int
    layers: tuple[LayerCount, ...]

    @property
    def code_bytes(self) -> int:
        return self.kernels_bytes + self.glue_bytes + self.library_bytes

    @property
    def wrapped(self) -> bool:
        """Whether the machine's timer ran over: a layer then seems to take less than nothing."""
        return any(layer.instructions < 0 for layer in self.layers)

    @property
    def cycles(self) -> int | None:
        known = [layer.cycles for layer in self.layers]
        return None if None in known else sum(count or 0 for count in known)


def load() -> list[Counted]:
    """The counts that were taken."""
    if not RECORD.is_file():
        return []
    rows = json.loads(RECORD.read_text(encoding="utf-8"))["counts"]
    return [Counted(**{**row, "layers": tuple(LayerCount(*one) for one in row["layers"])}) for row in rows]


def save(counts: list[Counted]) -> None:
    def plain(one: Counted) -> str:
        layers = [tuple(asdict(layer).values()) for layer in one.layers]
        return json.dumps({**asdict(one), "layers": layers}, separators=(",", ":"))

    ordered = sorted(counts, key=lambda one: (one.machine, one.model, one.cmsis_nn))
    rows = ",\n".join(map(plain, ordered))
    write_whole(RECORD, f'{{"counts": [\n{rows}\n]}}\n'.encode())


def published() -> list[Path]:
    """The model files of the folder."""
    named = os.environ.get("TINYML_MODELS")
    folder = Path(named) if named else ROOT.parent / "shared" / "models"
    return sorted(path for path in folder.glob("*") if path.suffix in (".onnx", ".tflite"))


def compiled(path: Path, target: str, cmsis_nn: bool) -> Compiled:
    """A published model; open dimensions are those of its recorded inputs."""
    return compile_model(path, Options(NAME, target, shapes=shapes(path), cmsis_nn=cmsis_nn))


def shapes(path: Path) -> dict[str, Shape]:
    samples = path.with_suffix(".npz")
    if path.suffix != ".onnx" or not samples.is_file():
        return {}
    with np.load(samples) as file:
        return {str(name): file[f"in{i}"].shape for i, name in enumerate(file["in_names"])}


def kernel_names(model: Compiled) -> tuple[str, ...]:
    return tuple(chosen.kernel.name for chosen in model.selected)


def is_current(counted: Counted, model: Compiled) -> bool:
    """Whether the model still has the layers and kernels that were counted."""
    names = kernel_names(model)
    return all(one.step < len(names) and one.kernel == names[one.step] for one in counted.layers)


def variants(path: Path, target: str) -> Iterator[tuple[bool, Compiled]]:
    """Without CMSIS-NN, and with it if that changes anything."""
    own = compiled(path, target, False)
    yield False, own
    library = compiled(path, target, True)
    if kernel_names(library) != kernel_names(own):
        yield True, library


def count(path: Path, machine: str, cmsis_nn: bool, model: Compiled) -> Counted:
    """Run a model twice: as users build it, and layer by layer."""
    inputs = [arrays.pattern_inputs(model.graph)]
    plain = harness.run_files(model.files, machine, inputs, reset_before={0})
    profiled, estimate = run_files(
        model.files, machine, inputs, reset_before={0}, options=harness.Options(profile=True)
    )
    assert plain.instructions is not None
    assert plain.footprint is not None
    assert profiled.layers is not None
    cycles = estimate.layers if isinstance(estimate, Cycles) else {}
    names, parts = kernel_names(model), plain.footprint
    return Counted(
        path.stem,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        machine,
        cmsis_nn,
        plain.instructions[0],
        kernels_bytes=parts.part(RUNTIME).flash + parts.part(CMSIS_NN).flash,
        glue_bytes=parts.part(MODEL).flash - parts.weights_bytes,
        library_bytes=parts.part(LIBRARY).flash,
        layers=tuple(
            LayerCount(step, names[step], spent, cycles.get(step))
            for step, spent in sorted(profiled.layers.items())
        ),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(MACHINES), metavar="MACHINES", help="default: %(default)s")
    parser.add_argument("--again", action="store_true", help="count again what is recorded")
    args = parser.parse_args()
    known = {(one.model, one.machine, one.cmsis_nn): one for one in load()}
    for machine in args.on.split(","):
        for path in published():
            counted = {key: one for key, one in known.items() if key[:2] == (path.stem, machine)}
            for cmsis_nn, model in variants(path, harness.find_machine(machine).target.name):
                key = (path.stem, machine, cmsis_nn)
                counted.pop(key, None)
                old = known.get(key)
                if old and not args.again and is_current(old, model):
                    continue
                print(f"{path.stem} on {machine}{' with CMSIS-NN' if cmsis_nn else ''}", flush=True)
                try:
                    known[key] = count(path, machine, cmsis_nn, model)
                except TinymlError as error:
                    print(f"  left out: {error}", file=sys.stderr)
                    continue
                save(list(known.values()))
            for key in counted:  # CMSIS-NN makes no difference any more
                del known[key]
    save(list(known.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
