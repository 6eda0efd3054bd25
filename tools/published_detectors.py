# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Published detectors in C beside LiteRT or onnxruntime: do the same boxes come out?

``python -m tools.published_detectors MODEL ... [--shape INPUT=1x84x2100] [--fix INPUT=100,0.45,0.25]
[--photo FILE ...] [--bytes]``

Runs each model on parts of photographs, those that scikit-learn brings if none are given, compiled for the
host and in the runtime of its format, and prints a table in Markdown. Float pictures range from -1 to 1, with
``--bytes`` from 0 to 255. Inputs that are no pictures get random numbers between 0 and 1; ``--fix`` sets
those that are settings. The operator that chooses the boxes is also compiled alone for a Cortex-M4 and run in
QEMU on what it got: its instructions for the worst picture.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.compare.reference import find_reference
from tinyml.emit.model import Provenance
from tinyml.importers import read
from tinyml.importers.model_file import read_model
from tinyml.ir import Array, DType, Graph, Node, Shape, Tensor
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import NonMaxSuppression
from tinyml.ops.boxes.suppression import BoxSuppression
from tinyml.pipeline import Options, compile_graph

CHOOSES = (DetectionPostProcess, NonMaxSuppression, BoxSuppression)
CLOSE = 1e-4
"""Of the largest number: float layers add up in another order."""
HEAD = "| model | operator | runs | boxes | equal | worst difference | instructions, Cortex-M4 | SHA-256 |"
Sample = dict[str, Array]


@dataclass(frozen=True)
class Row:
    """What was found. ``worst``: of all outputs, relative to the largest number of an output."""

    model: str
    operator: str
    boxes: list[int]
    equal: int
    worst: float
    instructions: str
    digest: str

    def __str__(self) -> str:
        counts = ", ".join(map(str, self.boxes))
        worst = "0" if self.worst == 0 else f"{self.worst:.1e}"
        cells = (self.model, self.operator, len(self.boxes), counts, self.equal, worst, self.instructions)
        return "| " + " | ".join(map(str, cells)) + f" | `{self.digest[:16]}` |"


@dataclass(frozen=True)
class Setup:
    """What models get: so many runs, on these photographs."""

    runs: int = 6
    photos: Sequence[Path] = ()
    bytes: bool = False
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    fixed: Mapping[str, Array] = field(default_factory=dict)


def pictures(setup: Setup) -> list[Array]:
    """Parts of photographs, smaller and smaller, on other sides."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    photos = [np.asarray(Image.open(path).convert("RGB")) for path in setup.photos]
    photos = photos or load_sample_images().images
    found = []
    for number in range(setup.runs):
        whole = photos[number % len(photos)]
        side = int(min(whole.shape[:2]) * 0.9**number)
        top, left = whole.shape[0] - side, (whole.shape[1] - side) * (number % 3) // 2
        found.append(whole[top : top + side, left : left + side])
    return found


def picture_for(tensor: Tensor, picture: Array, in_bytes: bool) -> Array:
    """A picture in the size, the order of axes and the range that an input has."""
    rows, columns = tensor.shape[1:3] if tensor.shape[3] == 3 else tensor.shape[2:4]
    y = np.arange(rows) * picture.shape[0] // rows
    x = np.arange(columns) * picture.shape[1] // columns
    sized = picture[y][:, x]
    if tensor.shape[3] != 3:
        sized = sized.transpose(2, 0, 1)
    if tensor.dtype is DType.UINT8:
        return sized[None]
    if tensor.dtype is DType.INT8:
        return (sized.astype(np.int16) - 128).astype(np.int8)[None]
    return (sized[None] if in_bytes else sized[None] / 127.5 - 1).astype(np.float32)


def value_for(tensor: Tensor, picture: Array, in_bytes: bool, rng: np.random.Generator) -> Array:
    if len(tensor.shape) == 4 and 3 in (tensor.shape[1], tensor.shape[3]):
        return picture_for(tensor, picture, in_bytes)
    if tensor.dtype.is_float:
        return rng.uniform(0, 1, tensor.shape).astype(tensor.dtype.numpy)
    zero = tensor.quant.zero_point if tensor.quant is not None else 0
    return np.full(tensor.shape, zero, tensor.dtype.numpy)


def samples_for(graph: Graph, setup: Setup) -> list[Sample]:
    rng = np.random.default_rng(1)
    found = []
    for picture in pictures(setup):
        sample = {name: value_for(graph.tensors[name], picture, setup.bytes, rng) for name in graph.inputs}
        for name in setup.fixed.keys() & sample.keys():
            sample[name] = setup.fixed[name].reshape(sample[name].shape).astype(sample[name].dtype)
        found.append(sample)
    return found


def chooser(graph: Graph) -> Node:
    """The operator that chooses the boxes; the last one, if there are several."""
    return next(node for node in reversed(graph.nodes) if isinstance(node.op, CHOOSES))


def operands_of(graph: Graph, node: Node) -> list[str]:
    """What an operator gets at run time."""
    return [name for name in dict.fromkeys(node.inputs) if name and not graph.tensors[name].is_constant]


def alone(graph: Graph, node: Node) -> Graph:
    """The operator as a model of its own."""
    used = {name for name in (*node.inputs, *node.outputs) if name}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in used}
    return Graph("operator", tensors, (node,), tuple(operands_of(graph, node)), node.outputs)


def instructions(graph: Graph, node: Node, operands: Sequence[Sample]) -> str:
    origin = Provenance("operator", "0" * 64, "")
    try:
        compiled = compile_graph(alone(graph, node), "operator", origin, Options(target="cortex-m4"))
        result = harness.run_files(compiled.files, "qemu-cortex-m4", operands)
    except TinymlError as error:
        return f"none: {str(error).splitlines()[0]}"
    return f"{max(result.instructions or [0]):,}"


def number_of(graph: Graph, node: Node, found: Sample) -> int:
    """How many boxes came out of a run."""
    counts = [known.count for known in graph.counts] or [node.outputs[-1]]
    return int(found[counts[0]].reshape(-1)[0]) if counts[0] in found else -1


def distance(found: Array, wanted: Array) -> float:
    """The largest difference, relative to the largest number."""
    if found.shape != wanted.shape:
        return float("inf")
    real, other = (array.astype(np.float64) for array in (found, wanted))
    return float(np.abs(real - other).max(initial=0) / max(np.abs(other).max(initial=0), 1e-9))


def differences(graph: Graph, node: Node, found: Sample, wanted: Sequence[Array]) -> list[float]:
    """Of each output. LiteRT leaves rows after the last box of TFLite_Detection_PostProcess as they were."""
    rows = None
    if isinstance(node.op, DetectionPostProcess):
        rows = int(found[node.outputs[3]].reshape(-1)[0]) * node.op.kinds
    values = []
    for name, other in zip(graph.outputs, wanted, strict=True):
        own = found[name]
        if rows is not None and name in node.outputs[:3]:
            own, other = own[:, :rows], other[:, :rows]
        values.append(distance(own, other))
    return values


def row_of(path: Path, setup: Setup) -> Row:
    file = read_model(path)
    graph = read(file, dict(setup.shapes), {})
    node = chooser(graph)
    samples = samples_for(graph, setup)
    inner = [name for name in operands_of(graph, node) if name not in (*graph.outputs, *graph.inputs)]
    seen = replace(graph, outputs=(*graph.outputs, *inner))
    compiled = compile_graph(seen, "detector", Provenance(path.name, "0" * 64, ""), Options(target="host"))
    runs = harness.run_files(compiled.files, "host", samples).outputs
    answers = find_reference(file, graph).run(samples)
    found = [differences(graph, node, *pair) for pair in zip(runs, [a.outputs for a in answers], strict=True)]
    operands = [
        {name: {**sample, **run}[name] for name in operands_of(graph, node)}
        for sample, run in zip(samples, runs, strict=True)
    ]
    return Row(
        path.name,
        node.op.kind,
        [number_of(graph, node, run) for run in runs],
        sum(max(values) <= CLOSE for values in found),
        max(max(values) for values in found),
        instructions(graph, node, operands),
        hashlib.sha256(file.content).hexdigest(),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--shape", action="append", default=[], help="of an input that a model leaves open")
    parser.add_argument("--fix", action="append", default=[], help="the numbers of an input")
    parser.add_argument("--runs", type=int, default=6, help="pictures (%(default)s)")
    parser.add_argument("--photo", action="append", type=Path, default=[], help="a file (repeatable)")
    parser.add_argument("--bytes", action="store_true", help="float pictures range from 0 to 255")
    args = parser.parse_args()
    shapes = {name: tuple(map(int, text.split("x"))) for name, text in (s.split("=") for s in args.shape)}
    fixed = {
        name: np.array(list(map(float, text.split(",")))) for name, text in (f.split("=") for f in args.fix)
    }
    setup = Setup(args.runs, args.photo, args.bytes, shapes, fixed)
    print(HEAD)
    print("|---|---|---|---|---|---|---|---|", flush=True)
    bad = 0
    for path in args.models:
        try:
            row = row_of(path, setup)
        except TinymlError as error:
            print(f"| {path.name} | refused: {error} |", flush=True)
            bad += 1
            continue
        print(row, flush=True)
        bad += row.equal < len(row.boxes)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
