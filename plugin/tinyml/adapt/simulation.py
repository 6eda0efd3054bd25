# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model that learns, in numpy: runs, examples and decisions, as a device has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from tinyml.adapt import stored
from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import AdaptPlan, Last, Prototypes
from tinyml.adapt.prototypes import ClassMeans
from tinyml.adapt.threshold import Normal
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph, Layer, Node, given
from tinyml.ir.interpreter import Interpreter
from tinyml.ops.dense.adapted import AdaptedDense
from tinyml.ops.observed import Observed, Rescaled


@dataclass(frozen=True)
class _Learning(AdaptedDense):
    """The layer with what it has learnt."""

    compute: Callable[[Array], Array] = field(default=lambda x: x, compare=False)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (self.compute(given(inputs, 0)).reshape(layer.output.shape),)


@dataclass(frozen=True)
class _Scaling(Rescaled):
    """An input with the mean and scale that were learnt."""

    compute: Callable[[Array], Array] = field(default=lambda x: x, compare=False)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (self.compute(given(inputs, 0)),)


@dataclass(frozen=True)
class _Noting(Observed):
    """A tensor that is noted."""

    note: Callable[..., None] = field(default=lambda *_: None, compare=False)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        self.note(*inputs)
        return (given(inputs, 0),)


def learner_of(plan: AdaptPlan) -> stored.Learner:
    """What learns, as the factory leaves it."""
    if isinstance(plan.part, Last):
        return LastLayer(plan.part)
    return ClassMeans(plan.part) if isinstance(plan.part, Prototypes) else Normal(plan.part)


class Simulation:
    """Runs of a compiled graph whose learner learns between them."""

    def __init__(self, graph: Graph, plan: AdaptPlan) -> None:
        self.plan = plan
        self.learner = learner_of(plan)
        self.graph = graph
        self._machine = Interpreter(replace(graph, nodes=tuple(self._node(node) for node in graph.nodes)))

    def _node(self, node: Node) -> Node:
        op, learner = node.op, self.learner
        if isinstance(op, AdaptedDense) and isinstance(learner, LastLayer):
            own = {name: getattr(op, name) for name in ("clamp", "round_once", "single_scales", "real")}
            return replace(node, op=_Learning(**own, learner=op.learner, compute=learner.run))
        if isinstance(op, Rescaled) and isinstance(learner, Normal) and learner.inputs is not None:
            return replace(node, op=_Scaling(op.learner, compute=learner.inputs.run))
        if isinstance(op, Observed) and not isinstance(learner, LastLayer):
            return replace(node, op=_Noting(op.learner, op.source, op.function, note=learner.run))
        return node

    def reset(self) -> None:
        """Forget the state of the model, not what was learnt."""
        self._machine.reset()

    def run(self, sample: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of one run, by name."""
        values = self._machine.run(sample)
        return {name: values[name] for name in self.graph.outputs}

    @property
    def learnt(self) -> bytes:
        """The bytes that NAME_learnt() gives."""
        return stored.encode(self.learner, self.plan)

    def restore(self, data: bytes) -> None:
        """Take bytes back that a device or a simulation has learnt."""
        stored.restore(self.learner, self.plan, data)
