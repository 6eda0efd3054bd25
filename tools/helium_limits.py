# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write docs/HELIUM_LIMITS.md: what the heaviest layers take on a Cortex-M55, and what they must take.

``python -m tools.helium_limits``

The models are in the folder ``TINYML_MODELS``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.datasets import arrays
from tinyml.ir import Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.weighted import helium
from tinyml.pipeline import Options, compile_model

PAGE = ROOT / "docs" / "HELIUM_LIMITS.md"
MACHINE = "qemu-cortex-m55"
MODELS = {
    "KWS": "mlperf_kws_int8",
    "IC": "mlperf_resnet_int8",
    "VWW": "mlperf_vww_int8",
    "SWW": "mlperf_strww_int8",
}
LEAST_SHARE = 0.03  # of a model: lighter layers are not listed

INTRODUCTION = """\
# Limits of the Helium kernels

<!-- Written by `python -m tools.helium_limits`; do not edit. -->

This page shows where the instructions of the Helium kernels go, and what keeps them from taking fewer. The
tables have the layers that take at least 3 % of a model on a Cortex-M55, counted in QEMU, each computed as a
whole (without bands of rows). *Products* and
*rescaling* are what the kernel's instructions for these amount to if every vector is full; the *rest* is what
geometry costs: copies of windows and rows, padding, incomplete vectors and tiles, loops, calls.

- **Convolution.** Products: two loads of filters, four of windows and eight VMLADAV multiply sixteen
  elements of two filters at four windows, 1.75 instructions for 16 MACs. All eight registers that can hold a
  sum are in use, so a larger tile would spill. Rescaling sixteen outputs takes 44 instructions with ReLU:
  8 to move sums into vectors, 4 to add biases, 8 to multiply and shift, 4 for the shifts' bytes, 9 to narrow
  and add the zero point, 3 to load tables, 8 to store. Other activations take 56, because negative halves
  round away from zero and limits apply; with one rounding 48.
- **Depthwise convolution.** Lanes are channels, so outputs share nothing. For a 3x3 kernel, sixteen outputs
  take 88 instructions: 22 loads, 18 multiplications to 16 bits, 8 additions of two products, 40 to widen and
  add to 32 bits. Three products do not fit into 16 bits. Rescaling takes 30 instructions with ReLU, 46
  without and 34 with one rounding.
"""


@dataclass(frozen=True)
class Limit:
    """What a layer must take, and why it takes more."""

    products: float
    rescaling: float
    why: str


def convolution(layer: Layer[Convolution]) -> Limit:
    outputs = layer.output.elements
    filters, _, _, channels = layer.input(1).shape
    elements = int(np.prod(layer.input(1).shape[1:]))
    lanes = helium.whole_vectors(elements)
    why = []
    if lanes > elements:
        why.append(f"{elements} elements of a window take {lanes} lanes")
    if elements > channels or filters <= 16:
        why.append(f"every window is copied for {filters} filters")
    if layer.output.elements // filters % 4:
        why.append("the last tile of four windows is incomplete")
    if 1.75 * lanes / helium.LANES < 4:
        why.append("rescaling takes about as much as products")
    return Limit(
        1.75 * elements / helium.LANES * outputs,
        {"relu": 44, "twice": 56, "once": 48}[helium.conv_loop(layer)] / 16 * outputs,
        "; ".join([*why, "products"] if 1.75 * lanes / helium.LANES >= 4 else why),
    )


def depthwise(layer: Layer[Convolution]) -> Limit:
    outputs, channels = layer.output.elements, layer.output.shape[3]
    _, height, width, _ = layer.input(1).shape
    pairs, odd = divmod(height * width, 2)
    why = ["widening of products, which no two outputs share"]
    if channels % helium.LANES and channels != helium.LANES // 2:
        why.append(f"{channels} channels take {helium.whole_vectors(channels)} lanes")
    if any(layer.op.pads):
        why.append("rows are copied with their padding")
    return Limit(
        (19 * pairs + 12 * odd) / 16 * outputs,
        {"relu": 30, "twice": 46, "once": 34}[helium.depthwise_loop(layer).split("_")[1]] / 16 * outputs,
        "; ".join(why),
    )


LIMITS = {"tinyml_conv_mve_s8": convolution, "tinyml_depthwise_conv_mve_s8": depthwise}


def section(title: str, path: Path) -> str:
    options = Options(
        target=harness.find_machine(MACHINE).target.name, name="model", kernels="portable", bands=False
    )
    model = compile_model(path, options)
    inputs = [arrays.pattern_inputs(model.graph)]
    counted = harness.run_files(model.files, MACHINE, inputs, options=harness.Options(profile=True)).layers
    assert counted is not None
    total = sum(counted.values())
    lines = [
        f"## {title}: {total:,} instructions",
        "",
        "| layer | instructions | products | rescaling | rest | what limits it |",
        "|---|---:|---:|---:|---:|---|",
    ]
    others, number = 0, 0
    for step, spent in sorted(counted.items()):
        chosen = model.selected[step]
        find = LIMITS.get(chosen.kernel.name)
        if find is None or spent < LEAST_SHARE * total:
            others, number = others + spent, number + 1
            continue
        layer = cast(Layer[Convolution], chosen.layer)
        limit = find(layer)
        rest = spent - limit.products - limit.rescaling
        if rest < 0:
            raise SystemExit(f"{path.stem}: layer {step} takes fewer instructions than its limit")
        shares = (f"{part / spent:.0%}" for part in (limit.products, limit.rescaling, rest))
        sizes = "x".join(map(str, layer.output.shape)), "x".join(map(str, layer.input(1).shape[1:3]))
        what = f"{step} {layer.op.label()} {sizes[0]}, {sizes[1]} kernel"
        lines.append(f"| {what} | {spent:,} | {' | '.join(shares)} | {limit.why} |")
    lines.append(f"| {number} others | {others:,} | | | | |")
    return "\n".join([*lines, ""])


def main() -> int:
    folder = Path(os.environ.get("TINYML_MODELS", ROOT / "models"))
    parts = [section(title, folder / f"{name}.tflite") for title, name in MODELS.items()]
    PAGE.write_text("\n".join([INTRODUCTION, *parts]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
