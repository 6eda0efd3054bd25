# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write docs/KERNEL_CHANGES.md: layers that other kernels compute than before, and what both kernels take.

``python -m tools.kernel_changes --save FILE`` in the sources as they were, then
``python -m tools.kernel_changes --since FILE`` in those of now: every layer of the samples and of the
published models whose kernel differs is computed by both kernels, on the emulated cores. The models are in
the folder ``TINYML_MODELS``; CMSIS-NN may be chosen.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools import kernel_counts, layer_counts
from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.ir import Graph, Layer, Node, Tensor
from tinyml.ops.framework.kernel import Kernel, kernels_of
from tinyml.pipeline import choose_kernels, optimize, read_graph

PAGE = ROOT / "docs" / "KERNEL_CHANGES.md"
INTRODUCTION = """\
# Kernels that were chosen differently

`python -m tools.kernel_changes --since FILE` compared two versions of the sources. Where CMSIS-NN and a
built-in kernel can compute a layer, the one with fewer instructions is chosen, provided that a kernel of
CMSIS-NN saves 1 % of a run in all of its layers: else its code is not linked. Instructions were estimated
with two figures for each kernel that were typed in; now they are estimated with the figures of `tinyml cost`,
which are fitted to counted layers
([COSTS.md](COSTS.md)). This page lists the layers of the samples and of the published models for which that
makes a difference with CMSIS-NN and `optimize: balanced`, and the counted instructions of both kernels.
Without CMSIS-NN the same kernels are chosen as before. A ratio above 1 is a kernel of CMSIS-NN that was
faster, and is no longer linked because it saved less than 1 % of the model.
"""

Choices = Mapping[str, Sequence[str]]
"""For a model and a core, the kernels of its layers in their order."""


@dataclass(frozen=True)
class Change:
    """A layer with another kernel."""

    model: str
    layer: Layer
    before: str
    now: str


def models() -> dict[str, Path]:
    """The published models, and those of the samples that need no operators of their own."""
    files = {path.stem: path for path in layer_counts.published()}
    for path in sorted((ROOT / "samples").rglob("*")):
        if path.suffix in (".onnx", ".tflite") and "custom_operator" not in path.parts:
            files[path.relative_to(ROOT).as_posix()] = path
    return files


def graph_of(path: Path) -> Graph:
    return optimize(read_graph(path, layer_counts.shapes(path)))


def choices(graphs: Iterable[tuple[str, Graph]]) -> dict[str, list[str]]:
    found = {}
    for name, graph in graphs:
        for machine in layer_counts.ARM:
            chosen = choose_kernels(graph, harness.find_machine(machine).target, "auto", cmsis_nn=True)
            found[f"{name} {machine}"] = [one.kernel.name for one in chosen]
    return found


def changes(name: str, graph: Graph, machine: str, before: Choices, now: Choices) -> Iterator[Change]:
    """Of a model that has as many layers as before."""
    old, new = (each.get(f"{name} {machine}", ()) for each in (before, now))
    if len(old) == len(new):
        for layer, was, becomes in zip(graph.layers(), old, new, strict=True):
            if was != becomes:
                yield Change(name, layer, was, becomes)


def counted(found: Iterable[Change], machine: str) -> list[tuple[Change, int, int]]:
    """Both kernels of each layer, in one image."""
    found = list(found)
    tensors: dict[str, Tensor] = {}
    nodes: list[Node] = []
    kernels: list[Kernel[Any]] = []
    for change in found:
        layer = change.layer
        tensors |= {t.name: t for t in layer.inputs if t is not None}
        for name in (change.before, change.now):
            result = f"result{len(nodes)}"
            tensors[result] = replace(layer.output, name=result)
            operands = tuple("" if t is None else t.name for t in layer.inputs)
            nodes.append(Node(f"layer{len(nodes)}", layer.op, operands, (result,)))
            kernels.append(next(k for k in kernels_of(type(layer.op)) if k.name == name))
    inputs = dict.fromkeys(name for n in nodes for name in n.inputs if name and not tensors[name].is_constant)
    outputs = tuple(name for node in nodes for name in node.outputs)
    graph = Graph("changes", tensors, tuple(nodes), tuple(inputs), outputs)
    spent, _ = kernel_counts.computed(graph, kernels, machine)
    return [(change, spent[2 * i], spent[2 * i + 1]) for i, change in enumerate(found)]


def section(machine: str, rows: list[tuple[Change, int, int]]) -> str:
    target = harness.find_machine(machine).target.name
    if not rows:
        return f"## {target}\n\nNothing changed.\n"
    first, last = sum(old for _, old, _ in rows), sum(new for _, _, new in rows)
    lines = [
        f"## {target}",
        "",
        f"{len(rows)} layers, which took {first:,} instructions and take {last:,}.",
        "",
        "| model | input | weights | before | instructions | now | instructions | ratio |",
        "|---|---|---|---|---:|---|---:|---:|",
    ]
    for change, old, new in rows:
        x, w = ("x".join(map(str, change.layer.input(i).shape)) for i in (0, 1))
        cells = (change.model, x, w, change.before, f"{old:,}", change.now, f"{new:,}", f"{new / old:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--save", type=Path, metavar="FILE", help="write the kernels that are chosen")
    group.add_argument("--since", type=Path, metavar="FILE", help="compare with such a file")
    args = parser.parse_args()
    try:
        graphs = {name: graph_of(path) for name, path in models().items()}
        now = choices(graphs.items())
        if args.save:
            args.save.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
            return 0
        before = json.loads(args.since.read_text(encoding="utf-8"))
        sections = []
        for machine in layer_counts.ARM:
            rows = []
            for name, graph in graphs.items():
                if found := list(changes(name, graph, machine, before, now)):
                    print(f"{machine}: {name}, {len(found)} layers", flush=True)
                    rows += counted(found, machine)
            sections.append(section(machine, rows))
        PAGE.write_text("\n".join([INTRODUCTION, *sections]), encoding="utf-8")
    except TinymlError as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
