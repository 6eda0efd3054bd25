# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Published models with goldens: where they are, their inputs, and how close the outputs must be.

    for model in published():                       # empty where the folder is absent
        graph = model.graph()                       # imported, with the inner tensors that goldens know
        ...run on model.runs() ...
        problems = Check(model).add(step, outputs)  # [] when all is well

The folder is not part of the repository; ``TINYML_MODELS`` names it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml import importers
from tinyml.importers import onnx_graph
from tinyml.ir import Array, Graph, Shape

ROOT = Path(__file__).resolve().parents[2]


def folder() -> Path | None:
    """The folder of published models, or None."""
    named = os.environ.get("TINYML_MODELS")
    place = Path(named) if named else ROOT.parent / "shared" / "models"
    return place if (place / "index.csv").is_file() else None


def published() -> list[Published]:
    """All models of the folder, by name."""
    place = folder()
    if place is None:
        return []
    with (place / "index.csv").open(newline="") as stream:
        rows = sorted(csv.DictReader(stream), key=lambda row: row["name"])
    return [Published(place, row) for row in rows]


@dataclass(frozen=True)
class Step:
    """One call of the model: inputs and expected outputs in the model's order."""

    label: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    inner: Mapping[int, Array]  # by position of the output: the tensor before its softmax
    starts_fresh: bool  # state is forgotten before it


@dataclass(frozen=True, eq=False)
class Published:
    """A row of the index."""

    place: Path
    row: Mapping[str, str]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return self.row["name"]

    @property
    def path(self) -> Path:
        return self.place / f"{self.name}.{self.row['format']}"

    @property
    def is_tflite(self) -> bool:
        return self.row["format"] == "tflite"

    @property
    def is_int8(self) -> bool:
        return self.row["numeric"] == "int8"

    @property
    def ends_in_float_softmax(self) -> bool:
        """Whether its outputs are real numbers, equal only up to the order of additions."""
        return not self.is_tflite and any(softmax for _, softmax in output_steps(self.path))

    @cached_property
    def arrays(self) -> dict[str, Array]:
        with np.load(self.path.with_suffix(".npz")) as file:
            return {key: file[key] for key in file.files}

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the goldens' inputs: ONNX files may leave theirs open."""
        if self.is_tflite:
            return {}
        names = self.arrays["in_names"].tolist()
        return {name: self.arrays[f"in{i}"].shape for i, name in enumerate(names)}

    def steps(self) -> list[Step]:
        """All samples and steps, in the order in which they were recorded."""
        count = max(int(self.arrays["samples"]), int(self.arrays["steps"]))
        letter = "t" if int(self.arrays["steps"]) > 1 else "s"
        suffixes = ["", *(f"_{letter}{i}" for i in range(1, count))]
        return [self._step(suffix, index) for index, suffix in enumerate(suffixes)]

    def _step(self, suffix: str, index: int) -> Step:
        a = self.arrays
        inputs = tuple(a[f"in{i}{suffix}"] for i in range(len(a["in_names"])))
        count = len(a["out_names"])
        outputs = tuple(self._right(f"out{i}{suffix}") for i in range(count))
        inner = {i: self._right(f"pre{i}{suffix}") for i in range(count) if f"pre{i}{suffix}" in a}
        fresh = index == 0 or "_s" in suffix
        return Step(f"{self.name}{suffix}", inputs, outputs, inner, fresh)

    def _right(self, key: str) -> Array:
        """The golden that rounds as CMSIS-NN and TensorFlow Lite Micro do, where there are two."""
        return self.arrays.get(f"tfl214_{key}", self.arrays[key])

    @cached_property
    def taps(self) -> list[int]:
        """Outputs whose inner tensor is compared too: integers, as exposing those does not affect fusion."""
        return [i for i, array in self.steps()[0].inner.items() if array.dtype.kind in "iu"]

    def graph(self, taps: bool = False) -> Graph:
        """The imported model; with ``taps``, the inner tensors are outputs too, after the others."""
        if not taps or not self.taps:
            return importers.load(self.path, self.shapes)
        if self.is_tflite:
            return self._tapped_tflite()
        model = onnx.load(self.path)
        names = self.arrays["pre_names"].tolist()
        model.graph.output.extend(onnx.ValueInfoProto(name=names[i]) for i in range(len(self.taps)))
        return onnx_graph.read(model, self.name, self.shapes)

    def _tapped_tflite(self) -> Graph:
        """Nodes are called after the tensor that the file says they compute."""
        import tflite

        graph = importers.load(self.path)
        main = tflite.Model.GetRootAs(self.path.read_bytes(), 0).Subgraphs(0)
        extra = []
        for position in self.taps:
            name = main.Tensors(int(self.arrays["pre_index"][position])).Name().decode()
            extra.append(next(node.outputs[0] for node in reversed(graph.nodes) if node.name == name))
        return replace(graph, outputs=(*graph.outputs, *extra))


def resets(steps: Sequence[Step]) -> set[int]:
    """The numbers of the steps before which the state is forgotten."""
    return {index for index, step in enumerate(steps) if step.starts_fresh}


@dataclass
class Check:
    """Compares outputs with goldens by the rule for the kind of model; counts how many values are equal.

    TFLite int8: equal. ONNX int8: at most one step of the output's quantisation away; after a softmax
    that is left in float, one step of its input. Float: the largest difference within 1e-5 of the largest
    magnitude of the golden, or one float32 epsilon: onnxruntime's sigmoid is no better than that near 0.
    """

    model: Published
    values: int = 0
    equal: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, step: Step, found: Sequence[Array], tapped: bool = False) -> None:
        """``found``: the outputs in the model's order, then the taps if it was built with them."""
        wanted = [*step.outputs, *(step.inner[i] for i in self.model.taps if tapped)]
        if len(found) != len(wanted):
            self.problems.append(f"{step.label}: {len(found)} outputs instead of {len(wanted)}")
            return
        for index, (f, w) in enumerate(zip(found, wanted, strict=True)):
            self.values += w.size
            self.equal += int((f.reshape(-1) == w.reshape(-1)).sum()) if f.size == w.size else 0
            if complaint := self._difference(f, w, index if index < len(step.outputs) else None):
                self.problems.append(f"{step.label}, output {index}: {complaint}")

    @property
    def equal_share(self) -> float:
        return self.equal / max(self.values, 1)

    def _difference(self, found: Array, wanted: Array, output: int | None) -> str:
        if found.size != wanted.size or found.dtype != wanted.dtype:
            return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
        wrong, rule = self._wrong(found.reshape(-1), wanted.reshape(-1), output)
        if not wrong.any():
            return ""
        at = int(np.flatnonzero(wrong)[0])
        f, w = found.reshape(-1)[at], wanted.reshape(-1)[at]
        return f"{int(wrong.sum())} of {wrong.size} are not {rule}, first at {at}: {f} instead of {w}"

    def _wrong(self, found: Array, wanted: Array, output: int | None) -> tuple[Array, str]:
        if self.model.is_int8 and self.model.is_tflite:
            return found != wanted, "equal"
        if wanted.dtype.kind in "iu":
            return np.abs(found.astype(np.int64) - wanted.astype(np.int64)) > 1, "within one step"
        if self.model.is_int8 and output is not None:
            scale, softmax = output_steps(self.model.path)[output]
            if softmax:  # one step up or down in each of two logits
                floor = np.finfo(np.float32).tiny
                far = np.abs(np.log(np.maximum(found, floor)) - np.log(np.maximum(wanted, floor)))
                return far > 2.001 * scale, f"within a step of {scale:g} before the softmax"
            return np.abs(found - wanted) > 1.001 * scale, f"within one step of {scale:g}"
        limit = max(1e-5 * float(np.abs(wanted).max()), float(np.finfo(np.float32).eps))
        return ~(np.abs(found - wanted) <= limit), f"within {limit:g}"


def output_steps(path: Path) -> list[tuple[float, bool]]:
    """For each output of an ONNX model: its quantisation's scale, and whether a softmax comes after it."""
    graph = onnx.load(path).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    producers = {name: node for node in graph.node for name in node.output}
    constants |= {
        node.output[0]: attribute.t
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
    }
    found = []
    for value in graph.output:
        node, softmax = producers[value.name], False
        if node.op_type == "Softmax":
            node, softmax = producers[node.input[0]], True
        assert node.op_type == "DequantizeLinear", f"{path.name}: {value.name} is not quantised"
        found.append((float(numpy_helper.to_array(constants[node.input[1]]).reshape(())), softmax))
    return found


def feeds(graph: Graph, steps: Sequence[Step]) -> Iterator[dict[str, Array]]:
    """Inputs by tensor name, as a harness takes them."""
    for step in steps:
        yield {
            name: array.reshape(graph.tensors[name].shape)
            for name, array in zip(graph.inputs, step.inputs, strict=True)
        }


def in_order(graph: Graph, outputs: Mapping[str, Array]) -> list[Any]:
    """Outputs by tensor name, as ``Check`` takes them."""
    return [outputs[name] for name in graph.outputs]
