# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count what every kernel takes for the layers of ``tools/kernel_layers.py``: ``tools.fit_costs`` fits it.

``python -m tools.kernel_counts [--on qemu-cortex-m4,...] [--again]``

Each kernel that can compute a layer computes it, on every emulated core. The counts go into
benchmarks/kernel_counts.json; those that are there are not taken again, unless other kernels can compute the
layer now (``--again``: all, after a change of a kernel's C). Requires CMSIS-NN and the tools of the cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from tools import layer_counts
from tools.environment import ROOT
from tools.kernel_layers import CASES as CASES
from tools.kernel_layers import GROUPS, sketched

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__, harness
from tinyml.base.errors import TinymlError
from tinyml.base.whole_files import write_whole
from tinyml.cores.targets import Target
from tinyml.cost.cycles import Cycles, run_files
from tinyml.datasets import arrays
from tinyml.emit import emit
from tinyml.emit.model import Provenance
from tinyml.emit.summary import summarize
from tinyml.ir import Graph, Layer
from tinyml.memory.plan import plan
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Library, kernels_of

RECORD = ROOT / "benchmarks" / "kernel_counts.json"
MACHINES = layer_counts.MACHINES
AT_ONCE = 12  # layers in an image, each computed by all of its kernels


@dataclass(frozen=True)
class KernelCount:
    """What one kernel took for one layer."""

    machine: str
    layer: str
    kernel: str
    instructions: int
    cycles: int | None = None


def load() -> list[KernelCount]:
    """The counts that were taken."""
    if not RECORD.is_file():
        return []
    return [KernelCount(*row) for row in json.loads(RECORD.read_text(encoding="utf-8"))["counts"]]


def save(counts: Iterable[KernelCount]) -> None:
    ordered = sorted(counts, key=lambda one: (one.machine, one.layer, one.kernel))
    rows = ",\n".join(json.dumps(list(asdict(one).values()), separators=(",", ":")) for one in ordered)
    write_whole(RECORD, f'{{"counts": [\n{rows}\n]}}\n'.encode())


@cache
def layer_of(name: str) -> Layer:
    (layer,) = sketched([name]).layers()
    return layer


def contenders(layer: Layer, target: Target) -> list[Kernel[Any]]:
    """The kernels of libraries that can compute a layer on a core; of those for floats only the first.

    If the weights fit into four bits, those for bytes are left out: they are counted on other layers.
    """
    libraries = {Library.PORTABLE, Library.CMSIS_NN} if target.arm else {Library.PORTABLE}
    fit = (k for k in kernels_of(type(layer.op)) if k.library in libraries and k.runs_on(target))
    found = [kernel for kernel in fit if kernel.refusal(layer) is None]
    packed = [kernel for kernel in found if kernel.weight_bits < 8]
    return found[:1] if layer.output.dtype.is_float else packed or found


def count(machine: str, names: Iterable[str]) -> Iterator[KernelCount]:
    """Every contender for every layer, in one image."""
    names = list(names)
    target = harness.find_machine(machine).target
    kernels = {name: contenders(layer_of(name), target) for name in names}
    graph = sketched(names, {name: len(found) for name, found in kernels.items()})
    assigned = [(name, kernel) for name, found in kernels.items() for kernel in found]
    spent, cycles = computed(graph, [kernel for _, kernel in assigned], machine)
    for step, (name, kernel) in enumerate(assigned):
        yield KernelCount(machine, name, kernel.name, spent[step], cycles.get(step))


def computed(
    graph: Graph, kernels: Iterable[Kernel[Any]], machine: str
) -> tuple[dict[int, int], dict[int, int]]:
    """Instructions of each layer, computed by the kernels that are given, and cycles where they are known."""
    target = harness.find_machine(machine).target
    selected = tuple(
        Selected(layer, kernel, kernel.scratch_bytes(layer, target))
        for layer, kernel in zip(graph.layers(), kernels, strict=True)
    )
    placed = plan(graph, selected, False)
    emitted = emit("layers", graph, placed, selected, target, Provenance("layers", "0" * 64, ""))
    summary = summarize(
        "layers", graph, selected, placed, target, "0" * 64, __version__, emitted.layer_bytes, emitted.libm
    )
    files = {**emitted.files, "layers.json": summary.text}
    inputs = arrays.pattern_inputs(graph)
    for array in inputs.values():
        if array.dtype == bool:  # a mask: estimates are for the run in which it hides no key
            array[...] = True
    result, estimate = run_files(files, machine, [inputs], options=harness.Options(profile=True))
    assert result.layers is not None, "profiled images report every layer"
    return result.layers, dict(estimate.layers) if isinstance(estimate, Cycles) else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(MACHINES), metavar="MACHINES", help="default: %(default)s")
    parser.add_argument("--again", action="store_true", help="count again what is recorded")
    args = parser.parse_args()
    known = load()
    try:
        for machine in args.on.split(","):
            for group, cases in GROUPS.items():
                target = harness.find_machine(machine).target
                names = [name for name in cases if args.again or not _is_known(name, machine, target, known)]
                for start in range(0, len(names), AT_ONCE):
                    some = names[start : start + AT_ONCE]
                    print(f"{machine}: {len(some)} layers, {group}", flush=True)
                    found = list(count(machine, some))
                    known = [o for o in known if (o.machine, o.layer) not in {(machine, n) for n in some}]
                    known += found
                    save(known)
    except TinymlError as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        return 1
    return 0


def _is_known(name: str, machine: str, target: Target, known: Iterable[KernelCount]) -> bool:
    recorded = {one.kernel for one in known if (one.machine, one.layer) == (machine, name)}
    return recorded == {kernel.name for kernel in contenders(layer_of(name), target)}


if __name__ == "__main__":
    sys.exit(main())
