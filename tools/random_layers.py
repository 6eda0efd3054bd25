# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run random single layers on emulated cores and compare them with numpy: python -m tools.random_layers

python -m tools.random_layers --count 10000                         # every core, our kernels and CMSIS-NN's
python -m tools.random_layers --count 2000 --on qemu-cortex-m55 --kernels cmsis-nn
python -m tools.random_layers --count 10000 --kernels player        # layers that are data
python -m tools.random_layers --seed 3 --batch 17 --layer int8_17_42 # one layer again, on every core

Layers are made in batches, one image each. A layer that fails is printed with the command that repeats it
alone. Put it into WEIGHTED of tests/standalone/test_kernels.py as a case.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from tests.random_layers.batch import SHARES, SIZE, Batch, batch
from tests.random_layers.check import PLAYER, Choices, Place, Tally, check
from tinyml import harness
from tinyml.ir import Tensor
from tinyml.setup.workspace import find_cmsis_nn

MACHINES = [*harness.CORES, "qemu-riscv32-zve32x", "qemu-riscv32-zve32f"]  # these have kernels of their own
KERNELS = ("portable", "cmsis-nn", PLAYER)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="layers per core and library (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other layers")
    parser.add_argument("--on", action="append", choices=[*harness.MACHINES], help="only here (repeatable)")
    parser.add_argument("--kernels", action="append", choices=KERNELS, help="only these (repeatable)")
    parser.add_argument("--kind", choices=[*SHARES], help="only layers of this kind")
    parser.add_argument("--batch", type=int, help="only the batch with this number")
    parser.add_argument("--layer", action="append", help="of the batch, only this layer (repeatable)")
    args = parser.parse_args()
    places = list(_places(args.on or MACHINES, args.kernels or KERNELS))
    tallies = {place: Tally() for place in places}
    first = args.batch or 0
    last = first + 1 if args.batch is not None else -(-args.count // SIZE)
    begun = time.monotonic()
    for number in range(first, last):
        layers = batch(args.seed, number, kind=args.kind)
        if args.layer:
            layers = layers.only(args.layer)
        refused = set[str]()
        for place in places:
            found = check(layers, place, Choices.of(number), refused)
            tallies[place].add(found)
            for name, why in found.wrong.items():
                print(_report(layers, place, name, why, args.seed, number, args.kind), flush=True)
        done = " ".join(str(tally.equal) for tally in tallies.values())
        print(f"\rbatch {number}, {time.monotonic() - begun:.0f} s, equal: {done}", end="", flush=True)
    print("\n")
    for place, tally in tallies.items():
        floats = f"; {tally.compared} float layers compared with compiled code" if tally.compared else ""
        print(f"{place}: {tally.equal} equal, {len(tally.wrong)} wrong{floats}")
        for kernel, count in tally.kernels.most_common():
            print(f"  {count:6} {kernel}")
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


def _places(machines: Iterable[str], kernels: Iterable[str]) -> Iterable[Place]:
    for library in kernels:
        if library == "cmsis-nn" and find_cmsis_nn() is None:
            print("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace): only our own kernels run")
            continue
        for machine in machines:
            if library != "cmsis-nn" or machine.startswith("qemu-cortex-m"):
                yield Place(machine, library)


def _report(
    layers: Batch, place: Place, name: str, why: str, seed: int, number: int, kind: str | None
) -> str:
    node = next(node for node in layers.graph.nodes if node.name == name)
    tensors = [layers.graph.tensors[tensor] for tensor in (*node.inputs, *node.outputs) if tensor]
    return (
        f"\nwrong on {place} ({Choices.of(number).goal}): {name}: {why}\n  {node.op}\n"
        + "".join(f"  {t.name}: {t.dtype.name} {t.shape} {_short(t)}\n" for t in tensors)
        + f"  again: python -m tools.random_layers --seed {seed} --batch {number} --layer {name}"
        f" --on {place.machine} --kernels {place.kernels}{f' --kind {kind}' if kind else ''}"
    )


def _short(tensor: Tensor) -> str:
    if tensor.quant is None:
        return "no scale"
    several = f" and {len(tensor.quant.scales) - 1} more" if tensor.quant.per_channel else ""
    return f"scale {tensor.quant.scales[0]:.6g}{several}, zero point {tensor.quant.zero_points[0]}"


if __name__ == "__main__":
    sys.exit(main())
