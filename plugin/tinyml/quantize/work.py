# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One quantisation: a float model, its ranges, what stays float, and how quantised models are made of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

import onnx

from tinyml.base.errors import ConfigError, NothingToQuantizeError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress
from tinyml.datasets.reader import Samples
from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize import measure
from tinyml.quantize.activations import computed_limits
from tinyml.quantize.biases import other_biases
from tinyml.quantize.calibrate import Ranges, calibrate, shared
from tinyml.quantize.export_check import check_export
from tinyml.quantize.float16 import with_float16
from tinyml.quantize.forests import shrink_forests
from tinyml.quantize.integer_forms import float_nodes
from tinyml.quantize.layers import FloatLayer, find_layers, in_float_surroundings
from tinyml.quantize.linear import Linear, linear_layers
from tinyml.quantize.loop_results import kept_scales, results_of
from tinyml.quantize.measure import Outcome
from tinyml.quantize.open_outputs import open_outputs
from tinyml.quantize.precision import Precision, int16_nodes
from tinyml.quantize.prepare import Prepared
from tinyml.quantize.recurrent import (
    computed_weights,
    limited_states,
    shrink_weights,
)
from tinyml.quantize.recurrent_ranges import large_cells, name_states, over_all_steps, with_cells_between
from tinyml.quantize.reset_sums import LIMIT, large_reset_sums, with_reset_sums
from tinyml.quantize.rewrite import insert_qdq
from tinyml.quantize.sequences import unrolled
from tinyml.quantize.stored_weights import Nibbles, store
from tinyml.quantize.subgraphs import bodies
from tinyml.settings.quantize_request import Request

ROUNDS = 4
"""Maximum number of rounds: a node in float may leave a neighbour without an integer form."""


EXCEPTION = "with these attributes it has no integer form"
LARGE_CELLS = "its cells are larger than int16 holds with enough precision"
LARGE_RESET_SUMS = f"what its reset gate multiplies exceeds {LIMIT:g}, where int8 layers cut it off"
NAMED, NEEDED = "--keep-float names it", "--auto needs it"
NO_KERNEL = "the compiler has no integer kernel for it here"


@dataclass(frozen=True)
class Basis:
    """What integers are made of: a float model and the ranges of its activations."""

    model: onnx.ModelProto
    ranges: Ranges = field(default_factory=dict)
    means: Mapping[str, Array] = field(default_factory=dict)  # inputs of layers whose biases are corrected
    nibbles: Mapping[str, Nibbles] = field(default_factory=dict)  # weights for layers with four bits


class Work:
    """Holds what every step needs."""

    def __init__(self, prepared: Prepared, samples: Samples, request: Request, progress: Progress) -> None:
        self.original = prepared.model
        self.in_float = prepared.in_float or prepared.model
        self.loops = prepared.loops
        name_states(self.original)
        self.basis = Basis(prepared.model)
        self.states = prepared.states
        self.own = prepared.own
        self.samples = samples
        self.request = request
        self.progress = progress
        self.layers = find_layers(self.original)
        if not self.layers and not self.loops:
            kind = "have float16 weights" if self.stays_float else "be int8"
            loops = any(bodies(node) for node in self.original.graph.node)
            rest = ", and what it computes in loops stays float" if loops else ""
            raise NothingToQuantizeError(
                f"the model has no layer that could {kind}{rest}", "compile it as it is"
            )
        self.is_body = prepared.is_body
        self.all_int16 = False  # wherever it is possible, as for the body of a loop that was named
        self.reference = self.reference_of(self.in_float, samples)
        if prepared.doubted is not None:
            check_export(prepared.doubted, samples, self.reference.results)
        self.inputs = unrolled(self.original, samples, self.states)
        self._int8_only: frozenset[str] | None = None
        self._linear: tuple[onnx.ModelProto, list[Linear]] | None = None
        self._plain: tuple[object, onnx.ModelProto] | None = None
        self.opened: frozenset[str] = frozenset()  # outputs that are not quantised
        nodes = self.original.graph.node
        self.why: dict[str, str] = {}  # node that stays float -> the reason
        self.leave([n.name for n in nodes if quantizing(n.op_type).stays_float(n)], EXCEPTION)
        self.leave(limited_states(self.original), "it limits the state of a recurrent layer")
        self.leave(computed_weights(self.original), "its weights are not constants")
        self.leave(computed_limits(self.original), "its limits are not constants")
        self.leave(other_biases(self.original), "its bias differs from row to row")

    def reference_of(
        self, model: onnx.ModelProto, samples: Samples, tensors: Sequence[str] = ()
    ) -> measure.Reference:
        """What a model answers, and what is in some of its tensors."""
        return measure.Reference(model, samples, tensors, self.states, self.is_body)

    @property
    def stays_float(self) -> bool:
        """Whether only weights become smaller, and everything is computed in float."""
        return self.request.weights == "float16"

    @property
    def float_anyway(self) -> frozenset[str]:
        return frozenset(self.why)

    def leave(self, nodes: Iterable[str], why: str) -> None:
        """Leave these nodes in float."""
        for name in nodes:
            self.why.setdefault(name, why)

    def calibrated(self, model: onnx.ModelProto, method: str) -> Basis:
        found = calibrate(with_reset_sums(with_cells_between(model)), self.inputs, method, self.progress)
        ranges = over_all_steps(model, found)
        self.leave(large_cells(model, ranges, noted=not self.is_body), LARGE_CELLS)
        self.leave(large_reset_sums(model, ranges), LARGE_RESET_SUMS)
        return Basis(model, ranges)

    def linear(self) -> list[Linear]:
        """The layers with weights of the float model in use."""
        if self._linear is None or self._linear[0] is not self.basis.model:
            self._linear = self.basis.model, linear_layers(self.basis.model)
        return self._linear[1]

    def trial(self, wanted: Precision, what: str = "") -> Outcome:
        """Quantise with these layers in other precisions, and measure."""
        return self.reference.compare(self.model(wanted), self.progress if what else None, what)

    def model(self, wanted: Precision) -> onnx.ModelProto:
        """The quantised model with these layers in other precisions."""
        if self.stays_float:
            return with_float16(self.original, wanted.float16)
        model = onnx.ModelProto()
        model.CopyFrom(self._int8(wanted))
        nibbles = {name: self.basis.nibbles[name] for name in wanted.int4}
        if nibbles or self.basis.means:
            store(model, self.linear(), nibbles, self.basis.means)
        shrink_weights(model, self.byte_weights(wanted))
        shrink_forests(model, self.forests(wanted), self.request.leaves)
        open_outputs(model, self.opened)
        return model

    def _int8(self, wanted: Precision) -> onnx.ModelProto:
        """With onnxruntime's own weights and biases; the last one is kept, since trials vary the rest."""
        floats, int16 = self.floats(wanted), self.int16(wanted)
        ranges = self.basis.ranges
        key = (id(self.basis.model), id(ranges), floats, int16)
        if self._plain is None or self._plain[0] != key:
            self._plain = key, self._inserted(floats, int16)
        return self._plain[1]

    def _inserted(self, floats: Collection[str], int16: Collection[str]) -> onnx.ModelProto:
        model, ranges = self.basis.model, self.basis.ranges
        together = shared(model, ranges, floats, self.states)
        given = kept_scales(model, ranges, floats, self.states)
        return insert_qdq(model, together, floats, int16, given)

    def find_integer_forms(self, kept: Sequence[FloatLayer]) -> None:
        """Exclude layers that the compiler would compute in float anyway."""
        for _ in range(ROUNDS):
            more = float_nodes(self.model(Precision(tuple(kept)))) - self.float_anyway - nodes_of(kept)
            more &= {node.name for node in self.original.graph.node}
            if not more:
                return
            self.leave(more, NO_KERNEL)

    def narrow(self) -> frozenset[str]:
        """Nodes whose integer form supports only int8, found by making everything int16 once."""
        if self._int8_only is None:
            everything = {node.name for node in self.original.graph.node} - self.float_anyway
            model = self._inserted(self.float_anyway, everything)
            self._int8_only = frozenset(float_nodes(model) & everything)
        return self._int8_only

    def refuse_without_int16(self, int16: Sequence[FloatLayer]) -> None:
        for layer in int16:
            if quantizing(layer.op_type).trees:
                raise ConfigError(f"the trees {layer.name} always compare int16 features", "--leaves int16")
            if {*layer.nodes} & (self.narrow() | self.float_anyway):
                raise ConfigError(
                    f"layer {layer.name} ({layer.op_type}) cannot be computed on int16",
                    f"--keep-float {layer.name}",
                )

    def floats(self, wanted: Precision) -> frozenset[str]:
        """Nodes that stay float."""
        heads = [layer for layer in self.layers if layer.name in self.float_anyway]
        excluded = nodes_of(wanted.floats) | nodes_of(heads) | self.float_anyway
        return excluded | in_float_surroundings(self.original, excluded)

    def int16(self, wanted: Precision) -> frozenset[str]:
        """Nodes that compute on int16."""
        layers = (*wanted.int16, *(self.widened() if self.all_int16 else ()))
        given = [name for name, one in results_of(self.original).items() if one.bits == 16]
        if not layers and not given:
            return frozenset()
        never, ranges = self.floats(wanted) | self.narrow(), self.basis.ranges
        return frozenset(int16_nodes(self.original, ranges, self.layers, layers, never, self.states, given))

    def candidates(self) -> list[FloatLayer]:
        """The layers whose type is a choice."""
        return [
            layer
            for layer in self.layers
            if quantizing(layer.op_type).matrices
            or quantizing(layer.op_type).trees
            or (layer.name not in self.float_anyway and not quantizing(layer.op_type).moves)
        ]

    def widened(self) -> list[FloatLayer]:
        """Those of them that can have int16 activations."""
        return [layer for layer in self.candidates() if not self.narrow() & {*layer.nodes}]

    def forests(self, wanted: Precision) -> frozenset[str]:
        """Trees, except those that stay float."""
        return nodes_of([la for la in self.layers if quantizing(la.op_type).trees]) - nodes_of(wanted.floats)

    def byte_weights(self, wanted: Precision) -> frozenset[str]:
        """Recurrent nodes, except those that stay float."""
        recurrent = [layer for layer in self.layers if quantizing(layer.op_type).matrices]
        return nodes_of(recurrent) - nodes_of(wanted.floats)


def nodes_of(layers: Sequence[FloatLayer]) -> frozenset[str]:
    return frozenset(node for layer in layers for node in layer.nodes)
