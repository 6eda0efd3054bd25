# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which counters a model gets: bins, edges and classes, and how much memory they take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import DType, Graph, Tensor
from tinyml.ir.row_order import RowOrder
from tinyml.watch.keys import COUNTED, keys
from tinyml.watch.reference import HIGHEST, LOWEST, Grid, Reference, grid_of

BINS = 8
WHOLE = 1 << 15
"""Shares of a reference are counted in 1/32768."""

MOST_TRANSITIONS = 16
"""Classes up to which transitions are counted."""
MOST_DECISIONS = 64
"""Classes up to which the decisions for each are counted."""

MOST_CHANNELS = 64
"""Channels of an input that can be counted one by one."""

MOST_SCORES = 256
"""Classes up to which scores that need not add up to 1 are counted."""

MACS_PER_ELEMENT = 4096
"""Multiply-accumulates of a model for each element that a run counts: counting takes less than 1 %."""
FEWEST_ELEMENTS = 32

TOTALS_BYTES, SCORES_BYTES = 24, 20
MOST_RUNS = (1 << 24) - 1


@dataclass(frozen=True)
class Values:
    """An input or output that is counted in bins; not at all if there are no edges."""

    name: str
    dtype: DType
    elements: int
    stride: int = 1
    edges: tuple[int, ...] = ()
    reference: tuple[int, ...] = ()

    @property
    def ram_bytes(self) -> int:
        return 4 * BINS if self.edges else 0

    @property
    def counted(self) -> int:
        """The most elements that a run counts."""
        return -(-self.elements // self.stride) if self.edges else 0


@dataclass(frozen=True)
class Classes:
    """An output of which the largest element is the decision."""

    name: str
    dtype: DType
    classes: int
    logits: bool = False  # scores are what softmax makes of the elements
    multiplier: int = 1 << 16  # from stored integers to 1/2^24
    zero_point: int = 0

    @property
    def decisions(self) -> bool:
        return self.classes <= MOST_DECISIONS

    @property
    def transitions(self) -> bool:
        return self.classes <= MOST_TRANSITIONS

    @property
    def ram_bytes(self) -> int:
        moves = self.classes * (self.classes - 1) if self.transitions else 0
        return SCORES_BYTES + (4 * self.classes if self.decisions else 0) + -(-moves // 4) * 4


@dataclass(frozen=True)
class WatchPlan:
    """The counters of a model."""

    inputs: tuple[Values, ...]
    outputs: tuple[Values | Classes, ...]
    version: int = 0  # of the model, as its file has it
    channels: tuple[Values, ...] = ()  # of the first input, each with edges of its own
    order: RowOrder | None = None  # of an input in rows, if it is not that of the model file

    @property
    def most_runs(self) -> int:
        """Of a period: no counter of 32 bits overflows."""
        values = [v for v in (*self.inputs, *self.outputs) if isinstance(v, Values)]
        widest = max((c.classes for c in self.outputs if isinstance(c, Classes)), default=2)
        step = max(256, 32 * math.ceil(math.log2(widest)) + 32, *(v.counted for v in values), 1)
        return min(MOST_RUNS, ((1 << 32) - 1) // step)

    @property
    def ram_bytes(self) -> int:
        parts = TOTALS_BYTES + sum(part.ram_bytes for part in (*self.inputs, *self.channels, *self.outputs))
        return -(-parts // 8) * 8

    @property
    def values(self) -> tuple[str, ...]:
        """The outputs that are counted in bins, if they are."""
        return tuple(part.name for part in self.outputs if isinstance(part, Values))

    @property
    def notes(self) -> Iterable[str]:
        """What is not counted, in words."""
        for what, parts in (("input", self.inputs), ("output", self.outputs)):
            for part in parts:
                if isinstance(part, Values) and not part.edges:
                    yield (
                        f"watch: {what} {part.name} is not counted: there is no data to compare it with "
                        "(quantise the model, or watch_data), or its type has no histogram"
                    )
                elif isinstance(part, Values) and what == "input" and not part.reference:
                    yield (
                        f"watch: {what} {part.name} has no reference, so that there is no drift: quantise "
                        "the model with this version, or set watch_data"
                    )


def plan_watch(
    graph: Graph,
    references: Mapping[str, Reference],
    macs: int,
    version: int = 0,
    channels: Sequence[Reference] = (),
) -> WatchPlan:
    """The counters of a compiled graph; ``references`` by the name of the tensor.

    ``channels``: of the first input, if they are counted one by one.
    """
    outputs = [graph.tensors[name] for name in graph.outputs]
    decided = [_classes(tensor, graph) for tensor in outputs]
    tensors = [graph.tensors[name] for name in graph.inputs]
    shared = len(tensors) + sum(classes is None for classes in decided)
    room = max(macs // MACS_PER_ELEMENT // max(shared, 1), FEWEST_ELEMENTS)
    return WatchPlan(
        tuple(_values(tensor, references.get(tensor.name), room) for tensor in tensors),
        tuple(
            classes or _values(tensor, references.get(tensor.name), room)
            for classes, tensor in zip(decided, outputs, strict=True)
        ),
        version,
        tuple(_values(tensors[0], reference, room) for reference in channels),
    )


def channels_of(graph: Graph, order: RowOrder | None = None) -> int:
    """How many channels the input has; an error if they cannot be counted one by one.

    ``order``: of an input that arrives in rows, if it is not that of the model file.
    """
    tensors = [graph.tensors[name] for name in graph.inputs]
    what = "the model has no inputs"
    if len(tensors) > 1:
        what = f"the model has {len(tensors)} inputs"
    elif tensors:
        tensor = tensors[0]
        shape = order.shape if order else tensor.shape
        count = shape[-1] if shape else 1
        if tensor.dtype in COUNTED and 1 < count <= MOST_CHANNELS and tensor.elements:
            return count
        what = f"the input {tensor.name!r} is {tensor.dtype.value} with {count} channels"
    raise ConfigError(
        f"watch_channels: {what}",
        f"a model with one input, of 2 to {MOST_CHANNELS} channels in its last axis, where `io: rows` "
        "puts those that come first in the model file",
    )


def _classes(tensor: Tensor, graph: Graph) -> Classes | None:
    """An output with one score for each class; None for other outputs."""
    count = tensor.shape[-1] if tensor.shape else 1
    if tensor.dtype not in COUNTED or count < 2 or tensor.elements != count:
        return None
    logits = not _are_scores(tensor, graph)
    named = len(graph.labels) == count
    if count > MOST_SCORES and not _from_softmax(tensor.name, graph):
        return None
    if not named and logits and count > MOST_DECISIONS:
        return None
    quant = tensor.quant if tensor.quant is not None and not tensor.quant.per_channel else None
    scale, zero_point = (quant.scale, quant.zero_point) if quant is not None else (1.0, 0)
    multiplier = min(round(scale * 256 * 65536), (1 << 32) - 1)
    return Classes(tensor.name, tensor.dtype, count, logits, multiplier, zero_point)


SOFTMAXES = ("Softmax", "SoftmaxTable", "Hardmax")
UNCHANGED = ("Dequantize", "Quantize", "Requantize", "Cast")


def _are_scores(tensor: Tensor, graph: Graph) -> bool:
    """Whether the elements are probabilities; logits if not."""
    return any(_from_zero_to_one(t) for t in _origins(tensor.name, graph)) or _from_softmax(
        tensor.name, graph
    )


def _from_zero_to_one(tensor: Tensor) -> bool:
    quant = tensor.quant if tensor.quant is not None and not tensor.quant.per_channel else None
    if quant is None or not tensor.dtype.is_integer:
        return False
    low, high = tensor.dtype.limits
    return 0.9 < quant.scale * (high - quant.zero_point) < 1.02 and quant.zero_point == low


def _from_softmax(name: str, graph: Graph) -> bool:
    """Whether a tensor is that of a softmax, perhaps in another shape or type."""
    makers = {output: node for node in graph.nodes for output in node.outputs}
    names = (tensor.name for tensor in _origins(name, graph))
    return any(name in makers and makers[name].op.kind in SOFTMAXES for name in names)


def _origins(name: str, graph: Graph) -> Iterator[Tensor]:
    """A tensor and those that it has its values from, whatever their shapes and types."""
    makers = {output: node for node in graph.nodes for output in node.outputs}
    while name:
        yield graph.tensors[name]
        node = makers.get(name)
        goes_on = node is not None and (node.op.movement or node.op.kind in UNCHANGED)
        name = (node.inputs[0] or "") if node is not None and goes_on else ""


def _values(tensor: Tensor, reference: Reference | None, room: int) -> Values:
    stride = _stride(tensor.elements, room)
    grid = reference.grid if reference else grid_of(tensor)
    if tensor.dtype not in COUNTED or grid is None or not tensor.elements:
        return Values(tensor.name, tensor.dtype, tensor.elements)
    cells = _cell_edges(reference.counts if reference else (1,) * (HIGHEST - LOWEST + 1))
    edges = tuple(_key(cell, grid, tensor) for cell in cells)
    shares = _shares(reference.counts, cells) if reference else ()
    return Values(tensor.name, tensor.dtype, tensor.elements, stride, edges, shares)


def _stride(elements: int, room: int) -> int:
    """Every how many elements one is counted. All are counted in turn: it has no divisor of their number."""
    stride = max(1, -(-elements // room))
    while math.gcd(stride, elements) > 1:
        stride += 1
    return stride


def _cell_edges(counts: Sequence[int]) -> list[int]:
    """Where bins 1 to 7 begin: the ends have bins of their own, six others have equal shares of the rest.

    A cell that alone has more than a share fills a bin, and the others divide what is left. Where cells
    between two bins are empty, the edge is in the middle of them: a little noise moves nothing across it.
    """
    inner = [(LOWEST + 1 + place, count) for place, count in enumerate(counts[1:-1]) if count]
    found, rest, filled = [LOWEST + 1], sum(count for _, count in inner), 0
    for (cell, count), (following, _) in pairwise(inner):
        filled += count
        bins_left = BINS - 1 - len(found)
        if bins_left > 1 and filled * bins_left >= rest:
            found.append((cell + following + 1) // 2)
            rest, filled = rest - filled, 0
    while len(found) < BINS - 2:  # fewer cells than bins: empty ones follow
        found.append(min(found[-1] + 1, HIGHEST))
    found.append(HIGHEST)
    for index in range(len(found) - 2, 0, -1):  # bins that the end leaves no room for
        found[index] = min(found[index], found[index + 1] - 1)
    return found


def _shares(counts: Sequence[int], edges: Sequence[int]) -> tuple[int, ...]:
    """The share of each bin; together exactly one. Nothing if nothing was counted."""
    starts = [0, *(edge - LOWEST for edge in edges), len(counts)]
    bins = [sum(counts[low:high]) for low, high in pairwise(starts)]
    total = sum(bins)
    if not total:
        return ()
    shares = [count * WHOLE // total for count in bins]
    rest = sorted(range(BINS), key=lambda i: (-(bins[i] * WHOLE % total), i))
    for index in rest[: WHOLE - sum(shares)]:
        shares[index] += 1
    return tuple(shares)


def _key(cell: int, grid: Grid, tensor: Tensor) -> int:
    """The smallest element of the tensor that is in this cell or a higher one."""
    own = grid_of(tensor)
    if (
        own is not None
        and math.isclose(own.scale, grid.scale, rel_tol=1e-6)
        and own.zero_point == grid.zero_point
    ):
        return cell + (128 if tensor.dtype is DType.UINT8 else 0)
    real = (cell - 0.5 - grid.zero_point) * grid.scale
    if tensor.dtype is DType.FLOAT32:
        return int(keys(np.array([real], np.float32))[0])
    quant = tensor.quant if tensor.quant is not None and not tensor.quant.per_channel else None
    stored = real / quant.scale + quant.zero_point if quant is not None else real
    return int(np.clip(math.ceil(stored), -(1 << 31), (1 << 31) - 1))
