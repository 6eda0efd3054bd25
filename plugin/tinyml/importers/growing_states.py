# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders whose pasts grow by Concat, as Hugging Face's exporters write them: what is what in a file.

The present of a layer is its past followed by the rows of this run. The mask of the tokens and their
positions are inputs as well, with the names that these exporters give them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import onnx

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.states import KEY, Remembered, states_of

MASK = "attention_mask"
POSITIONS = ("position_ids", "cache_position")
INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


@dataclass(frozen=True)
class GrowingCache:
    """A state whose next value has more rows along ``axis``: ``concat`` joins them."""

    state: Remembered
    axis: int
    concat: onnx.NodeProto

    @property
    def new(self) -> str:
        """The rows of this run."""
        return str(self.concat.input[1])


@dataclass(frozen=True)
class GrowingModel:
    """A model with such caches; ``mask`` and ``position`` are empty if it has no such input."""

    caches: tuple[GrowingCache, ...]
    mask: str
    position: str


def growing_model(model: onnx.ModelProto) -> GrowingModel | None:
    """The caches that grow; None if there are none."""
    graph = without_copies(model).graph
    makers = {name: node for node in graph.node for name in node.output if name}
    inputs = {value.name: value for value in graph.input}
    caches = []
    for state in states_of(model):
        node = makers.get(state.output)
        while node is not None and node.op_type == "Identity":
            node = makers.get(node.input[0])
        if node is not None and node.op_type == "If":
            raise UnsupportedError(
                f"{state.output!r} comes out of an If: the file has a decoder with a past and one without",
                "use the one with a past: decoder_with_past_model.onnx, or export without merging them",
            )
        extents = extents_of(inputs[state.input])
        axis = _axis(node, state.input, len(extents))
        if node is not None and axis is not None and not isinstance(extents[axis], int):
            caches.append(GrowingCache(state, axis, node))
    if not caches:
        return None
    free = [name for name in inputs if name not in {tensor.name for tensor in graph.initializer}]
    mask = MASK if MASK in free else ""
    if mask and len(extents_of(inputs[mask])) != 2:
        raise UnsupportedError(
            f"the input {mask!r} has {len(extents_of(inputs[mask]))} axes",
            "export the model with a mask of tokens, (batch, length), or without one",
        )
    positions = [name for name in POSITIONS if name in free]
    return GrowingModel(tuple(caches), mask, positions[0] if positions else "")


GROWN = {
    ("", "Attention"): {4: 1, 5: 2},
    ("com.microsoft", "MultiHeadAttention"): {6: 1, 7: 2},
    ("com.microsoft", "GroupQueryAttention"): {3: 1, 4: 2},
}
"""Operators that add rows to a past: the places of pasts among inputs, and of presents among outputs."""


def unpaired(model: onnx.ModelProto) -> dict[str, str]:
    """Inputs with an open length that become outputs with more rows, and are no states in this file."""
    known = {state.input for state in states_of(model)}
    inputs = {v.name: extents_of(v) for v in model.graph.input if v.name not in known}
    computed = {name for node in model.graph.node for name in node.output}
    results = [value.name for value in model.graph.output]
    source: dict[str, str] = {}  # of copies
    grown: dict[str, str] = {}  # present -> past
    for node in model.graph.node:
        if node.op_type == "Identity":
            source[node.output[0]] = source.get(node.input[0], node.input[0])
        for past, present in GROWN.get((node.domain, node.op_type), {}).items():
            if past < len(node.input) and present < len(node.output):
                extents = inputs.get(node.input[past], ())
                if any(isinstance(extent, str) for extent in extents):
                    grown[node.output[present]] = node.input[past]
        if node.op_type == "Concat" and node.input[0] in inputs and node.input[-1] in computed:
            extents = inputs[node.input[0]]
            axis = _axis(node, node.input[0], len(extents))
            if axis is not None and isinstance(extents[axis], str):
                grown[node.output[0]] = node.input[0]
    ends = {name: source.get(name, name) for name in results}
    return {grown[made]: name for name, made in ends.items() if made in grown}


def note_on(pairs: Mapping[str, str]) -> str:
    """What a user has to do so that a past is kept from run to run."""
    past, present = next(iter(pairs.items()))
    return (
        f"the output {present!r} is the input {past!r} and rows of this run, and the model does not keep it "
        "from run to run: if it shall, name the pairs in the file, onnx.helper.set_model_props(model, "
        f"{{{KEY!r}: {json.dumps(json.dumps(dict(pairs)))}}}), and state the longest length "
        "(docs/decoders.md)"
    )


def without_copies(model: onnx.ModelProto) -> onnx.ModelProto:
    """Pasts are read directly: a tracer writes a Concat of one tensor where a cache was empty before."""
    pasts = {state.input for state in states_of(model)}
    same: dict[str, str] = {}
    for node in model.graph.node:
        alone = len(node.input) == 1 and node.op_type in ("Concat", "Identity")
        source = same.get(node.input[0], node.input[0]) if alone else ""
        if source in pasts and node.output[0] not in {value.name for value in model.graph.output}:
            same[node.output[0]] = source
    if not same:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    nodes = [node for node in made.graph.node if node.output[0] not in same]
    for node in nodes:
        for index, name in enumerate(node.input):
            node.input[index] = same.get(name, name)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del made.graph.node[:]
    made.graph.node.extend(copies)
    return made


def extents_of(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    """Each extent, or the name of one that is open; empty if it has none."""
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else d.dim_param for d in dims)


def _axis(node: onnx.NodeProto | None, past: str, rank: int) -> int | None:
    """Along which a node joins a past and new rows; None if it does something else."""
    if node is None or node.op_type != "Concat" or len(node.input) != 2 or node.input[0] != past:
        return None
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    return int(axis % rank) if -rank <= axis < rank else None
