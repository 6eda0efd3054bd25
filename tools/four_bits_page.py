# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write docs/FOUR_BITS.md: published models with weights of four bits beside the same models in int8.

``python -m tools.four_bits_page [--check | --measure [--on qemu-cortex-m4] | --estimate]``

``--measure`` rounds the weights of the models in the folder ``TINYML_MODELS`` (``tools.four_bit_models``)
and measures them into benchmarks/four_bits.json. The int8 rows are those of benchmarks/record.json.
``--estimate`` (and ``--measure``) compares estimates with them into benchmarks/four_bits_costs.json.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.bench import record
from tinyml.bench.measure import Row, measure
from tinyml.pipeline import Options
from tools import kernel_counts
from tools.four_bit_models import rounded
from tools.four_bits_sections import Estimated, estimated, estimates_section, load, rivals_section, save

MODELS = {
    "mlperf_ad_int8": "AD, dense",
    "mlperf_kws_int8": "KWS, DS-CNN",
    "mlperf_resnet_int8": "IC, ResNet-8",
    "mcunet_vww_int8": "VWW, MCUNet",
}
MACHINES = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m7", "qemu-cortex-m55")
KERNELS = "portable"
RECORD = ROOT / "benchmarks" / "four_bits.json"
PUBLISHED = ROOT / "benchmarks" / "record.json"
PAGE = ROOT / "docs" / "FOUR_BITS.md"

TEXT = """\
# Weights of four bits

<!-- Written by `python -m tools.four_bits_page`; do not edit. -->

This page shows what weights of four bits save in flash, and what they cost in instructions.

If the weights of an int8 convolution or dense layer, less their zero point, are at most 16 consecutive
integers (those of int4 are -8 to 7), four bits hold each of them. The compiler looks at the values, so it
does not matter which tool made the model, or whether its file calls them int4 or int8. The outputs are the
same to the last bit; only flash and instructions differ.

| `optimize` | weights that fit into four bits |
|---|---|
| `balanced`, `ram` | are stored in four bits, unless that is known to take over 1.5 times the instructions \
of the layer; all layers that take more may add 2 % to a run |
| `size` | the same with 4 times |
| `speed` | stay bytes, unless four bits are known to take no more instructions |

Layers with fewer than 256 weights keep their bytes, unless their outputs are so large for their sums that
bytes leave plain C only, or a kernel that they alone would link is saved. So do layers whose kernel for four
bits would add more code than all of its layers save, depthwise layers with fewer than 1,024 weights on
RISC-V's vectors and, other than 3x3, on Helium, and those whose kernel covers the whole input on other cores.
Where a layer hardly counts in a run, a kernel with less code is taken. A transposed convolution is computed
as a convolution for each remainder of a position after the strides, with the kernels for DSP instructions on
Helium as well; each repeats the bias and the factor of a filter, so filters with fewer than about 18 weights
for each of them keep their bytes. Models as data (`pack --data`) are stored in the same way for cores whose
player has all kernels of the model, and in bytes for others: where depthwise layers have four bits on Helium
and RISC-V's vectors, or outputs are large for their sums on Helium and on Arm without DSP. The player's
transposed convolutions have bytes.

Random layers with such weights are compared with numpy on every core (`python -m tools.random_layers --kind
four_bits`); [TESTING.md](TESTING.md) has the counts.

The table compares published int8 models with the same models whose weights were rounded to -7 to 7, with one
scale for each filter (`python -m tools.four_bit_models`). That says nothing about accuracy: nothing was
calibrated. Percentages are relative to int8. Constants are weights and all other constants: a bias, a factor
and an exponent for each output channel, nine bytes or more, which stay as exact as they are, and
descriptions of layers. Where filters are small, as in depthwise layers, these weigh most.

| model | core | weights | | other constants | constants | | flash | | instructions | | arena | stack |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


@contextmanager
def models() -> Iterator[dict[str, Path]]:
    """The models with rounded weights, as files."""
    folder = Path(os.environ["TINYML_MODELS"])
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        files = {name: Path(scratch) / f"{name}.tflite" for name in MODELS}
        for path in files.values():
            path.write_bytes(rounded((folder / path.name).read_bytes()))
        yield files


def measured(files: Mapping[str, Path], machines: Sequence[str], old: Sequence[Row]) -> Iterator[Row]:
    """The rounded models on these machines; the rows of others as they were."""
    for name, path in files.items():
        for machine in MACHINES:
            if machine in machines:
                print(f"{name} on {machine}", flush=True)
                yield measure(path, machine, KERNELS, Options())
            else:
                yield from (row for row in old if (row.model, row.machine) == (name, machine))


def page() -> str:
    """The whole page, from what was recorded."""
    estimates, rows = load(), record.load(RECORD).rows
    table = _table(rows, record.load(PUBLISHED).rows, estimates)
    return table + estimates_section(estimates, MODELS, rows) + rivals_section(kernel_counts.load())


def _table(rows: Sequence[Row], bytes_: Sequence[Row], estimates: Sequence[Estimated]) -> str:
    stored = {(one.model, one.machine): one for one in estimates}
    lines = []
    for row in rows:
        own = stored[row.model, row.machine]
        before = next(
            (b for b in bytes_ if (b.model, b.machine, b.kernels) == (row.model, row.machine, KERNELS)), None
        )
        core = row.machine.removeprefix("qemu-")
        cells = [
            f"{own.weights_bytes:,} | {own.weights_bytes / own.weights - 1:+.1%}",
            f"{row.constants_bytes - own.weights_bytes:,}",
        ]
        cells += [
            f"{getattr(row, name):,} | {_percent(row, before, name)}"
            for name in ("constants_bytes", "flash_bytes", "instructions")
        ]
        cells += [f"{row.arena_bytes:,}", f"{row.stack_bytes:,}"]
        lines.append(f"| {MODELS[row.model]} | {core} | {' | '.join(cells)} |")
    return TEXT + "\n".join(lines) + "\n"


def _percent(row: Row, before: Row | None, name: str) -> str:
    return "" if before is None else f"{getattr(row, name) / getattr(before, name) - 1:+.1%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    parser.add_argument("--measure", action="store_true", help="measure again; takes minutes")
    parser.add_argument("--estimate", action="store_true", help="estimate again")
    parser.add_argument("--on", choices=MACHINES, action="append", metavar="MACHINE", help="only there")
    args = parser.parse_args()
    if args.measure or args.estimate:
        with models() as files:
            old = record.load(RECORD).rows if RECORD.is_file() else ()
            rows = tuple(measured(files, args.on or MACHINES, old)) if args.measure else old
            record.save(RECORD, record.Record(record.compiler_name(MACHINES), rows))
            save(estimated(files, rows, KERNELS))
    text = page()
    if args.check:
        return 0 if PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
