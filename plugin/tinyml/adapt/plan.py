# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What learns in a compiled graph, and the graph with the layers that do it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from tinyml.adapt.scaling import Scaling, scaled_input, with_reference
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Layer, Node, Tensor
from tinyml.ops.dense.adapted import AdaptedDense
from tinyml.ops.dense.dense import Dense
from tinyml.ops.observed import Observed
from tinyml.ops.shared.quant import clamp_range, is_quantized, quant_of
from tinyml.ops.weighted.records import constant_weights, folded_bias, int8_tensors, symmetric_weights
from tinyml.ops.weighted.weighted import channel_multipliers
from tinyml.settings.adapt_request import LAST, PROTOTYPES, Adapt

FORMAT = 1
"""Of what is learnt, as bytes."""

CROSS_ENTROPY, SQUARED = "cross_entropy", "squared"
SOFTMAXES = ("Softmax", "SoftmaxTable")
TYPES = ("Dequantize", "Quantize", "Requantize", "Cast")


@dataclass(frozen=True, eq=False)
class Last:
    """The last dense layer, in stored integers. What is learnt is added to weights and biases.

    A difference of a weight is counted in steps of the weight, that of a bias in steps of the sum.
    """

    tensor: str  # the embedding
    output: str  # of the layer
    weights: Array  # int8 (classes, features)
    bias: Array  # int32, with the input's zero point folded in
    multiplier: Array
    shift: Array
    in_zero: int
    out_zero: int
    low: int
    high: int
    round_once: bool
    step: Array  # float64: the scale of each class's weights
    unit: Array  # float32: of the sums of each class
    rate: Array  # float32: of weights, per class
    bias_rate: Array
    limit: Array
    bias_limit: Array
    step_rate: float  # as PyTorch has it
    decay: float
    momentum: float
    batch: int
    loss: str
    softmax: bool  # the model's own last layer
    holdout: tuple[Array, Array] | None = None  # embeddings, labels
    holdout_correct: int = 0

    @property
    def classes(self) -> int:
        return int(self.weights.shape[0])

    @property
    def features(self) -> int:
        return int(self.weights.shape[1])


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Means of embeddings, one for each class."""

    tensor: str
    features: int
    zero_point: int
    scale: float
    classes: int
    cosine: bool
    reject: float


@dataclass(frozen=True, eq=False)
class Threshold:
    """Mean and variance of a score. Scores of autoencoders are mean squared errors."""

    output: Tensor
    input: Tensor | None  # that the output reconstructs; None: the output is the score
    sigmas: float
    least: int
    scaling: Scaling | None = None  # of the input


@dataclass(frozen=True, eq=False)
class AdaptPlan:
    """What learns, and what its bytes are recognised by."""

    kind: str
    part: Last | Prototypes | Threshold
    digest: bytes

    @property
    def last(self) -> Last:
        assert isinstance(self.part, Last)
        return self.part

    def with_reference(self, samples: Sequence[Mapping[str, Array]]) -> AdaptPlan:
        """The plan of a threshold whose inputs get the means and deviations of samples."""
        assert isinstance(self.part, Threshold)
        assert self.part.scaling is not None
        name = self.part.scaling.input.name
        scaling, digest = with_reference(self.part.scaling, self.digest, (sample[name] for sample in samples))
        return replace(self, part=replace(self.part, scaling=scaling), digest=digest)

    @property
    def notes(self) -> list[str]:
        if isinstance(self.part, Last):
            return [f"adapt: learning rate {self.part.step_rate:.3g}, {self.part.loss.replace('_', ' ')}"]
        return []


def learner_name(name: str) -> str:
    """The C name of the description of what learns."""
    return f"{name}_adapter"


def plan_adapt(graph: Graph, name: str, request: Adapt, sha256: str) -> tuple[Graph, AdaptPlan]:
    """The graph with the layers that learn, and what the C needs to know; ConfigError if nothing can."""
    if request.kind == LAST:
        return _last(graph, name, request, sha256)
    if request.kind == PROTOTYPES:
        return _prototypes(graph, name, request, sha256)
    return _threshold(graph, name, request, sha256)


def _digest(sha256: str, kind: str, *parts: object) -> bytes:
    found = hashlib.sha256(f"{sha256} {kind} {FORMAT}".encode())
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return found.digest()[:8]


def _path(graph: Graph) -> tuple[Node, list[Node]]:
    """The last dense layer, and the nodes between it and the first output."""
    producers = graph.producers()
    after: list[Node] = []
    name = graph.outputs[0]
    while (node := producers.get(name)) is not None:
        if isinstance(node.op, Dense):
            return node, after
        if not (node.op.movement or node.op.kind in (*SOFTMAXES, *TYPES)):
            raise ConfigError(
                f"the model cannot learn: its output comes from {node.op.kind} {node.name!r}, not from a "
                "dense layer",
                "adapt is for models that end in a dense layer, with or without softmax",
            )
        after.insert(0, node)
        name = node.inputs[0] or ""
    raise ConfigError("the model cannot learn: it has no dense layer", "a model that ends in a dense layer")


def _layer(graph: Graph) -> tuple[Node, list[Node], Layer[Dense]]:
    node, after = _path(graph)
    layer = cast(Layer[Dense], graph.layer(node))
    weights = layer.input(1)
    if layer.output.elements != weights.shape[0]:
        raise ConfigError(
            f"the last dense layer computes {layer.output.elements // weights.shape[0]} rows; one can learn",
            "a model with one decision per run",
        )
    return node, after, layer


def _last(graph: Graph, name: str, request: Adapt, sha256: str) -> tuple[Graph, AdaptPlan]:
    node, after, layer = _layer(graph)
    fits = int8_tensors(layer) and constant_weights(layer) and symmetric_weights(layer)
    if not fits or layer.op.real:
        raise ConfigError(
            f"the last dense layer {node.name!r} is not int8 with symmetric weights: it cannot learn",
            "quantise the model first: tinyml quantize",
        )
    softmax = any(later.op.kind in SOFTMAXES for later in after)
    part = _last_part(layer, request, softmax)
    adapted = replace(node, op=_adapted(layer.op, learner_name(name)))
    nodes = [adapted if one is node else one for one in graph.nodes]
    digest = _digest(sha256, LAST, part.weights, part.bias, part.unit)
    return graph.with_nodes(nodes), AdaptPlan(LAST, part, digest)


def _adapted(op: Dense, learner: str) -> AdaptedDense:
    return AdaptedDense(
        clamp=op.clamp,
        round_once=op.round_once,
        single_scales=op.single_scales,
        real=op.real,
        learner=learner,
    )


def _last_part(layer: Layer[Dense], request: Adapt, softmax: bool) -> Last:
    x, w, y = layer.input(0), layer.input(1), layer.output
    weights = w.value.astype(np.int8)
    classes, features = weights.shape
    multiplier, shift = channel_multipliers(layer)
    x_scale = quant_of(x).scale
    w_scale = np.resize(np.array(quant_of(w).scales, np.float64), classes)
    rate = request.rate or _usual_rate(features, x_scale)
    low, high = clamp_range(layer.op.clamp, y)
    largest = np.maximum(np.abs(weights.astype(np.float64)).max(axis=1), 1.0)
    limit = (request.limit * largest).astype(np.float32)
    loss = request.loss
    if loss == "auto":
        loss = CROSS_ENTROPY if softmax or classes > 1 else SQUARED
    if softmax and loss == SQUARED:
        raise ConfigError(
            "the model ends in softmax: its loss is cross_entropy", "loss: cross_entropy, or auto"
        )
    if loss == CROSS_ENTROPY and classes < 2:
        raise ConfigError(
            "cross_entropy needs two classes or more, and the model has one output", "loss: squared"
        )
    return Last(
        x.name,
        y.name,
        weights,
        folded_bias(layer, weights),
        multiplier,
        shift,
        quant_of(x).zero_point,
        quant_of(y).zero_point,
        low,
        high,
        layer.op.round_once,
        w_scale,
        (x_scale * w_scale).astype(np.float32),
        (rate * x_scale / w_scale).astype(np.float32),
        (rate / (x_scale * w_scale)).astype(np.float32),
        limit,
        (limit * np.float32(127)).astype(np.float32),
        rate,
        rate * request.decay,
        request.momentum,
        request.batch,
        loss,
        softmax,
    )


def _usual_rate(features: int, scale: float) -> float:
    """Half of what a typical input allows: elements are then about an eighth of the range."""
    return float(f"{0.5 / (1 + features * (32 * scale) ** 2):.3g}")


def _renamed(graph: Graph, old: str, observed: Observed, others: Sequence[str] = ()) -> Graph:
    """The graph with ``observed`` behind a tensor: all readers get what it passes on."""
    tensor = graph.tensors[old]
    raw = f"{old}/seen"
    nodes: list[Node] = []
    for node in graph.nodes:
        if old in node.outputs:
            nodes.append(replace(node, outputs=tuple(raw if n == old else n for n in node.outputs)))
            nodes.append(Node(f"{old}/Observed", observed, (raw, *others), (old,)))
        else:
            nodes.append(node)
    return graph.with_nodes(nodes, [Tensor.of(raw, tensor.type)])


def _prototypes(graph: Graph, name: str, request: Adapt, sha256: str) -> tuple[Graph, AdaptPlan]:
    node, _, layer = _layer(graph)
    x = layer.input(0)
    if not is_quantized(x, DType.INT8) or x.elements != layer.input(1).shape[1]:
        raise ConfigError(
            f"the input of the last dense layer {node.name!r} is not int8: prototypes cannot be kept of it",
            "quantise the model first: tinyml quantize",
        )
    if x.name in graph.inputs:
        raise ConfigError("the model has one layer: its input is no embedding", "a deeper model")
    quant = quant_of(x)
    observed = Observed(learner_name(name), "adapt/prototypes.c", "tinyml_adapt_embed")
    part = Prototypes(
        x.name,
        x.elements,
        quant.zero_point,
        quant.scale,
        request.classes,
        request.distance == "cosine",
        request.reject,
    )
    facts = (part.features, part.zero_point, float(part.scale), part.classes)
    return _renamed(graph, x.name, observed), AdaptPlan(PROTOTYPES, part, _digest(sha256, PROTOTYPES, *facts))


def _threshold(graph: Graph, name: str, request: Adapt, sha256: str) -> tuple[Graph, AdaptPlan]:
    y = graph.tensors[graph.outputs[0]]
    source = None
    if y.elements != 1:
        same = [graph.tensors[n] for n in graph.inputs if graph.tensors[n].elements == y.elements]
        if len(same) != 1:
            raise ConfigError(
                f"the output {y.name!r} has {y.elements} elements: it is neither a score nor as long as one "
                "input",
                "an autoencoder, or a model with one score",
            )
        source = same[0]
    for tensor in (y, source):
        if tensor is not None and tensor.dtype is not DType.FLOAT32 and not is_quantized(tensor, DType.INT8):
            raise ConfigError(
                f"{tensor.name!r} is {tensor.dtype.value}: scores are computed from float32 or int8",
                "a float or an int8 model",
            )
    if y.name in graph.inputs or y.name not in graph.producers():
        raise ConfigError(f"the output {y.name!r} is not computed", "a model with layers")
    function = "tinyml_adapt_error" if source is not None else "tinyml_adapt_score"
    observed = Observed(learner_name(name), "adapt/threshold.c", function)
    facts: list[object] = [(t.name, t.shape, t.dtype.value) for t in (y, source) if t is not None]
    scaling = None
    if request.normalize:
        graph, scaling = scaled_input(graph, source, request.normalize, learner_name(name))
        facts.append((scaling.features, scaling.rows, scaling.least))
        source = graph.tensors[scaling.name] if source is not None else None
    part = Threshold(y, source, request.sigmas, request.least, scaling)
    graph = _renamed(graph, y.name, observed, [source.name] if source is not None else [])
    return graph, AdaptPlan(request.kind, part, _digest(sha256, request.kind, *facts))


def stored_bytes(part: Last | Prototypes | Threshold) -> int:
    """Of the values that are kept, without their header."""
    if isinstance(part, Last):
        return 4 * part.classes * (part.features + 1)
    if isinstance(part, Prototypes):
        return -(-(2 * part.classes * part.features + 2 * part.classes) // 4) * 4
    return 12 + (part.scaling.stored_bytes if part.scaling is not None else 0)
