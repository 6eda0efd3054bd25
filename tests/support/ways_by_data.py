# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models whose instructions depend on data, each with inputs that make them take long.

Trees, sorting, and the choice of boxes: tests and ``tools.worst_cases`` compare their bounds with the worst
of these inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.ops.trees import FEATURES, ML, forest
from tests.support.cases import Const, Stored, onnx_case, op_case
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph, Quant
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import NonMaxSuppression
from tinyml.ops.boxes.suppression import BoxSuppression
from tinyml.pipeline import Compiled, Options, compile_graph

ELEMENTS = 24
BOXES, OVERLAP = 20, 0.55
CLOSE_TO_ZERO = np.float32(1.4e-45)
SIZES = 2.0 ** np.arange(1, 7)
"""Of boxes with one centre: no two overlap by more than half."""
PER_STEP = 20  # of a code in bytes: a factor of two of a size
ORDERS = 6

Rows = list[tuple[Array, ...]]


@dataclass(frozen=True)
class Subject:
    """``samples``: values of the inputs, in their order."""

    name: str
    graph: Callable[[], Graph]
    samples: Rows

    def compiled(self, core: str) -> Compiled:
        return compile_graph(self.graph(), "m", Provenance("m", "0" * 64, ""), Options("m", core))


def trees() -> Subject:
    attributes = forest(6, 4, "target", [0], ["BRANCH_LEQ"], n_targets=1)
    rows = rows_of_numbers([1, FEATURES], 400)
    case = onnx_case("trees", "TreeEnsembleRegressor", [rows[0][0]], domain=ML, opset=13, **attributes)
    return Subject("trees", case.graph, rows)


def top(name: str, count: int) -> Subject:
    rows = rows_of_numbers([1, ELEMENTS])
    case = onnx_case(name, "TopK", [rows[0][0], Const(np.asarray([count]))], outputs=2, opset=13)
    return Subject(name, case.graph, rows)


def rows_of_numbers(shape: Sequence[int], random_ones: int = 20) -> Rows:
    """In order, in reverse, equal, and random."""
    random = np.random.default_rng(38)
    count = int(np.prod(shape))
    ordered = np.arange(count, dtype=np.float32)
    rows: list[Array] = [ordered, -ordered, 0 * ordered]
    rows += [random.normal(0, 2, count) for _ in range(random_ones)]
    return [(row.astype(np.float32).reshape(shape),) for row in rows]


def orders(boxes: int = BOXES) -> Iterator[Array]:
    """Of boxes by their scores: rising, falling, equal, and random."""
    random = np.random.default_rng(38)
    rising = np.arange(boxes)
    yield from (rising, -rising, 0 * rising)
    for _ in range(ORDERS - 3):
        yield random.permutation(boxes)


def places(scores: Array, most: int) -> Array:
    """Which of the different boxes each one is: the best come first, and only the last fills the last place.

    Those between overlap the box that was chosen last before them, and so are compared with all before it.
    """
    rank = np.argsort(np.argsort(-scores, kind="stable"), kind="stable")
    return np.where(rank == BOXES - 1, most - 1, np.minimum(rank, max(most - 2, 0)))


def sides(scores: Array, most: int) -> tuple[Array, Array]:
    """Heights and widths of boxes with one centre."""
    place = places(scores, most)
    return SIZES[place // SIZES.size], SIZES[place % SIZES.size]


def float_boxes(rows: int) -> Rows:
    """Nested ones, thin ones, for which libraries of floats take long, and random ones.

    The corners of a box come in both orders.
    """
    random = np.random.default_rng(38)
    found: Rows = []
    for scores in orders():
        place = places(scores, rows)
        half, start = 1.4**place, 0.95 * place
        for corners in (
            np.stack([-half, -half, half, half], 1),
            np.stack([start, 0 * start, start + 3.4, 0 * start + CLOSE_TO_ZERO], 1),
            random.uniform(0, 1, (BOXES, 4)),
        ):
            boxes, best = corners.astype(np.float32)[None], scores.astype(np.float32)[None, None]
            found += [(boxes, best), (boxes[:, :, [2, 3, 0, 1]], best)]
    return found


def byte_boxes(rows: int, center: bool, classes: int) -> Rows:
    random = np.random.default_rng(38)
    found: Rows = []
    for scores in orders():
        high, wide = sides(scores, rows)
        corners = np.stack([-high, -wide, high - 1, wide - 1], 1)
        if center:
            corners = np.stack([0 * wide + 13, 0 * wide - 29, 2 * wide - 1, 2 * high - 1], 1)
        best = np.tile(scores.astype(np.int8), (1, classes, 1))
        found.append((corners.astype(np.int8)[None], best))
        found.append((random.integers(-128, 128, (1, BOXES, 4)).astype(np.int8), best))
    return found


def suppression(
    name: str, rows: int, center: bool = False, classes: int = 1, stored: bool = False
) -> Subject:
    samples = byte_boxes(rows, center, classes) if stored else float_boxes(rows)
    boxes, scores = samples[0]
    op = NonMaxSuppression(rows * classes, rows, OVERLAP, -9.0 if center else None, center)
    quant = Quant.per_tensor(0.02, 0)
    operands = [Stored(boxes, quant), Stored(scores, quant)] if stored else [boxes, scores]
    return Subject(name, op_case(name, op, operands).graph, samples)


def together(name: str, rows: int, classes: int, stored: bool = False) -> Subject:
    """All classes share the rows, each of which could fill them alone. Every class has as many results.

    Its other boxes overlap the last of these, so they are compared with all of them.
    """
    samples: Rows = []
    for scores in orders():
        rank = np.argsort(np.argsort(-scores, kind="stable"), kind="stable")
        place = np.minimum(rank, rows // classes - 1)
        best = np.tile(scores, (1, classes, 1))
        if stored:
            high, wide = SIZES[place // SIZES.size], SIZES[place % SIZES.size]
            corners = np.stack([-high, -wide, high - 1, wide - 1], 1)
            samples += [
                (corners[:, order].astype(np.int8)[None], best.astype(np.int8))
                for order in ([0, 1, 2, 3], [2, 3, 0, 1])
            ]
            continue
        half, start = 1.4**place, 0.95 * place
        nested = np.stack([-half, -half, half, half], 1)
        thin = np.stack([start, 0 * start, start + 3.4, 0 * start + CLOSE_TO_ZERO], 1)
        samples += [
            (corners[:, order].astype(np.float32)[None], best.astype(np.float32))
            for corners in (nested, thin)
            for order in ([0, 1, 2, 3], [2, 3, 0, 1])
        ]
    boxes, scores = samples[0]
    quant = Quant.per_tensor(0.02, 0)
    operands = [Stored(boxes, quant), Stored(scores, quant)] if stored else [boxes, scores]
    return Subject(name, op_case(name, NonMaxSuppression(rows, rows, OVERLAP), operands).graph, samples)


def queued(name: str, rows: int) -> Subject:
    """TensorFlow Lite's way to choose, without batches and classes.

    It compares with the latest choice first, so those that are dropped overlap the first one.
    """
    samples: Rows = [(boxes[0], scores[0, 0]) for boxes, scores in float_boxes(rows)]
    for scores in orders():
        place = places(scores, rows)
        half = 1.4 ** np.where((place == rows - 2) & (np.cumsum(place == rows - 2) > 1), 0, place)
        corners = np.stack([-half, -half, half, half], 1)
        samples.append((corners.astype(np.float32), scores.astype(np.float32)))
    return Subject(name, op_case(name, BoxSuppression(rows, OVERLAP, -99.0), list(samples[0])).graph, samples)


def soft(name: str, rows: int, boxes: int = BOXES) -> Subject:
    """Boxes that lose about the same part of their score whenever one is chosen.

    So each of the others falls below those that were not yet compared with it, and has another turn.
    """
    random = np.random.default_rng(38)
    samples: Rows = []
    for order in orders(boxes):
        for jitter, size, unit in (
            (1e-3, 1, 1),
            (1e-2, 1, 1),
            (3e-2, 1, 2.0**-130),
            (3e-2, 2.0**-70, 2.0**-130),
        ):
            corners = size * (np.asarray([0, 0, 1, 1]) + jitter * random.normal(0, 1, (boxes, 4)))
            scores = unit * (1 + 2.0**-12 * order)
            samples.append((corners.astype(np.float32), scores.astype(np.float32)))
    samples += [in_turn(boxes, size, unit) for size in (1, 2.0**-70) for unit in (1, 2.0**-130)]
    op = BoxSuppression(rows, 1.0, 0.0, 5.0)
    return Subject(name, op_case(name, op, list(samples[0])).graph, samples)


def soft_with_threshold(name: str, rows: int) -> Subject:
    """The overlap that drops a box arrives at run time: with more than 1, also equal boxes stay."""
    fixed = soft(name, rows).samples
    samples = [(*row, np.asarray([part], np.float32)) for row in fixed for part in (1, 2)]
    op = BoxSuppression(rows, 1.0, 0.0, 5.0)
    return Subject(name, op_case(name, op, list(samples[0])).graph, samples)


def in_turn(boxes: int, size: float, unit: float) -> tuple[Array, Array]:
    """Boxes in a row, each a little behind the one before it.

    The best is chosen at one end of the row, then at the other: its neighbours lose more, so all others
    change their order, and each moves up far in the queue.
    """
    place = np.arange(boxes)
    step = 2.0**-10
    corners = np.stack([0 * place, step * place, 0 * place + 1, 1 + step * place], 1)
    scores = unit * (1 + step / 5 * place)
    return (size * corners).astype(np.float32), scores.astype(np.float32)


def suppression_with_counts(name: str) -> Subject:
    """The number of boxes, and of those to choose, arrive at run time."""
    counts = [np.asarray([count], np.int64) for count in (BOXES, BOXES, 2)]
    samples: Rows = []
    for first in counts:
        samples += [(*row, first, counts[0]) for row in float_boxes(BOXES)[:: 1 + 11 * int(first[0] == 2)]]
    boxes, scores, most, count = samples[0]
    op = NonMaxSuppression(BOXES, 0, OVERLAP)
    graph = op_case(name, op, [boxes, scores, most, None, None, count]).graph
    return Subject(name, graph, samples)


def codes(most: int, classes: int, by_class: bool, stored: bool) -> Rows:
    """Boxes relative to one anchor. By class, every class has better scores than those before it."""
    random = np.random.default_rng(38)
    found: Rows = []
    for number, order in enumerate(orders()):
        high, wide = sides(order, most)
        classes_up = np.arange(classes)
        steps = (
            40 * classes_up
            if by_class
            else (classes_up, -classes_up, random.permutation(classes))[number % 3]
        )
        scores = order[:, None] + steps[None, :]
        scores = scores - scores.min() + 20
        logs = np.log2(high), np.log2(wide)
        if stored:
            table = np.stack([0 * high + 13, 0 * high - 29, *(PER_STEP * log for log in logs)], 1)
            best: Array = np.clip(scores - 128, -128, 127).astype(np.int8)
            other: Array = random.integers(-128, 128, (BOXES, 4)).astype(np.int8)
        else:
            table = np.stack([0 * high + 0.37, 0 * high - 0.61, *(np.log(2) * log for log in logs)], 1)
            best = (scores / 256).astype(np.float32)
            other = random.normal(0, 1, (BOXES, 4)).astype(np.float32)
        found += [(boxes.astype(best.dtype)[None], best[None]) for boxes in (table, other)]
    return found


def detection(
    name: str, most: int, classes: int, kinds: int = 1, per_class: int = 0, stored: bool = False
) -> Subject:
    op = DetectionPostProcess(classes, most, kinds, per_class, 0.05, OVERLAP, (10.0, 10.0, 1.0, 1.0))
    samples = codes(per_class or most, classes, per_class > 0, stored)
    boxes, scores = samples[0]
    if not stored:
        anchors = np.tile(np.asarray([0.51, 0.47, 1.1, 0.9], np.float32), (BOXES, 1))
        return Subject(name, op_case(name, op, [boxes, scores, Const(anchors)]).graph, samples)
    steps = np.tile(np.asarray([3, -5, 99, 101], np.int8), (BOXES, 1))
    operands = [
        Stored(boxes, Quant.per_tensor(np.log(2) / PER_STEP, 0)),
        Stored(scores, Quant.per_tensor(1 / 256, -128)),
        Stored(steps, Quant.per_tensor(0.01, 0)),
    ]
    return Subject(name, op_case(name, op, operands).graph, [(*row, steps) for row in samples])


def subjects() -> list[Subject]:
    return [
        trees(),
        top("top 6 of 24", 6),
        top("sorting 24", ELEMENTS),
        suppression("boxes, 5 of 20", 5),
        suppression("boxes, all of 20", BOXES),
        suppression("int8 boxes, 5 of 20", 5, stored=True),
        suppression("int8 boxes, all of 20", BOXES, stored=True),
        suppression("int8 boxes by centre, 5 of 20, 3 classes", 5, True, 3, stored=True),
        suppression_with_counts("boxes, counts at run time"),
        together("boxes, 9 of 20 for 3 classes", 9, 3),
        together("int8 boxes, 12 of 20 for 2 classes", 12, 2, stored=True),
        queued("queued boxes, 5 of 20", 5),
        queued("queued boxes, all of 20", BOXES),
        soft("soft boxes, 5 of 20", 5),
        soft("soft boxes, all of 20", BOXES),
        detection("detection, 6 of 20", 6, 3),
        detection("detection, 6 of 20, 3 classes each", 6, 7, 3),
        detection("detection, by class", 8, 3, per_class=4),
        detection("int8 detection, 6 of 20", 6, 3, stored=True),
        detection("int8 detection, 6 of 20, 3 classes each", 6, 7, 3, stored=True),
        detection("int8 detection, by class", 8, 4, per_class=6, stored=True),
    ]
