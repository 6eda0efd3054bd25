# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Banded: convolutions and pools that follow one another, computed together in bands of rows.

The tensors between them never exist as a whole. An inverted bottleneck (widen, depthwise, narrow) then needs
only a few rows of its wide tensors, and a residual block, which adds the input of the chain at its end, can
be computed in place of that input. That input may reach the sum through layers of its own, the *side*: a
convolution with stride, a pool, a border of channels. ``bands/join.py`` creates it; no file format contains
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from tinyml.bands.layout import ALIGNMENT, Contents, Layout, Lead
from tinyml.bands.rows import Band, Bands, Stage, cut, to_sums
from tinyml.bands.sheet import PartSheet
from tinyml.hooks import RowWindow
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Overlay, Sheet, register_kernels
from tinyml.ops.shared.overlay import if_shared, whole_words
from tinyml.rules import operand_problem
from tinyml.targets import Target

T = TypeVar("T")

SUMS = "sums"  # the C name of those of the last link, if it adds up rows


@dataclass(frozen=True)
class Link:
    """One of the operators, with its kernel, the number of its operands and its output."""

    op: Op
    kernel: Kernel[Any]
    operands: int  # of its own: weights and bias, besides the tensor that goes through the chain
    output: TensorType
    residual: int | None = None  # the operand that is the chain's input, or the side; only in the last link


def links_fit(layer: Layer[Any]) -> bool:
    """The operands of every operator in the chain are what it requires."""
    return all(operand_problem(part.op, part.inputs) is None for part in layer.op.layers(layer))


@dataclass(frozen=True)
class Banded(Op):
    """Inputs: x, then the weights and the bias (or nothing in its place) of each link.

    The last ``side`` links before the very last one are the side: they lead from x to the last link too.
    """

    operands = (links_fit,)
    links: tuple[Link, ...]
    rows: int  # of the output in a band
    side: int = 0

    def label(self) -> str:
        return "_".join(link.op.label() for link in self.links)

    def attributes(self) -> dict[str, Any]:
        return {"chain": self.label(), "rows": self.rows}

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        results: list[Tensor | None] = []
        for link, own in zip(self.links, self._operands(inputs), strict=True):
            (found,) = link.op.infer(self._linked(link, given(inputs, 0), results, own))
            results.append(Tensor.of("", replace(link.output, shape=found.shape)))
        y = given(results, -1)
        return (TensorType(y.shape, y.dtype),)

    def layers(self, layer: Layer) -> Iterator[Layer]:
        """The operators one by one, each as a whole."""
        results: list[Tensor | None] = []
        for i, (link, own) in enumerate(zip(self.links, self._operands(layer.inputs), strict=True)):
            y = Tensor.of(f"{layer.name} {i}", link.output)
            yield Layer(layer.name, link.op, tuple(self._linked(link, layer.input(0), results, own)), (y,))
            results.append(y)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        results: list[Array | None] = []
        for link, part, own in zip(self.links, self.layers(layer), self._operands(inputs), strict=True):
            results += part.op.evaluate(part, self._linked(link, inputs[0], results, own))
        return (given(results, -1),)

    @property
    def by_rows(self) -> bool:
        return self.links[0].op.by_rows

    @property
    def main(self) -> int:
        """How many links lead from the input to the last link on the main way."""
        return len(self.links) - 1 - self.side

    def _linked(self, link: Link, x: T, results: Sequence[T], own: Sequence[T]) -> list[T]:
        """The operands of the next link: of the chain, its own, and of the side."""
        i = len(results)
        if i == 0 or (self.side and i == self.main):
            source = x
        else:
            source = results[self.main - 1] if i == len(self.links) - 1 else results[i - 1]
        return _with_residual(link, [source, *own], results[-1] if self.side and results else x)

    def _operands(self, inputs: Sequence[T]) -> Iterator[Sequence[T]]:
        """The operands of each link except the tensor that passes through the chain."""
        used = 1
        for link in self.links:
            yield inputs[used : used + link.operands]
            used += link.operands

    def macs(self, layer: Layer) -> int:
        return sum(part.op.macs(part) for part in self.layers(layer))

    def ends_in_sums(self, layer: Layer) -> bool:
        """Whether the last link adds up the rows that it gets, and makes its only row of them at the end."""
        *_, last = self.layers(layer)
        return not self.side and len(self.links) > 1 and self.links[-1].kernel.sums_rows(last)

    def rows_to_divide(self, layer: Layer) -> int:
        """Rows that bands divide: those of the output, or what the last link sums up."""
        *_, last = self.layers(layer)
        return (last.input(0) if self.ends_in_sums(layer) else last.output).shape[1]

    def bands(self, layer: Layer) -> Bands | None:
        found = [row_window(part) for part in self.layers(layer)]
        windows = [window for window in found if window is not None]
        if self.ends_in_sums(layer):
            return to_sums(cut(windows[:-1], self.rows, gently=True))
        main, side = [*windows[: self.main], windows[-1]], windows[self.main : -1]
        return cut(main, self.rows, side, gently=self.by_rows)


def _with_residual(link: Link, operands: list[T], x: T) -> list[T]:
    if link.residual is not None:
        operands.insert(link.residual, x)
    return operands


def row_window(layer: Layer) -> RowWindow | None:
    """How an operator goes down the rows of its input; None if it does not."""
    x, y = layer.input(0), layer.output
    if len(x.shape) != 4 or len(y.shape) != 4 or x.shape[0] != 1 or len(layer.outputs) != 1:
        return None
    variable = [t for t in layer.inputs if t is not None and not t.is_constant]
    if len(variable) > 1 and len(layer.inputs) != 2:
        return None
    return layer.op.row_window(layer)


def joins_two(layer: Layer) -> bool:
    """Whether a layer has a second variable operand besides the one that goes through the chain."""
    return len(layer.inputs) == 2 and all(t is not None and not t.is_constant for t in layer.inputs)


def _in_band(layer: Layer, stage: Stage) -> Layer:
    """The part of an operator that it computes in a band."""
    op, y = layer.op.with_row_padding(stage.pad_top, stage.pad_bottom), layer.output
    inputs = tuple(
        t if t is None or t.is_constant else replace(t, shape=(1, stage.source_rows, *t.shape[2:]))
        for t in layer.inputs
    )
    return replace(layer, op=op, inputs=inputs, outputs=(replace(y, shape=(1, stage.rows, *y.shape[2:])),))


def _row_elements(tensor: Tensor) -> int:
    return tensor.shape[2] * tensor.shape[3]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def divisible(layer: Layer[Banded]) -> bool:
    """The kernels support every band, all tensors have one type, and rows have more than one element.

    Types may differ in a chain that starts with rows as they arrive, which no other tensor overlays.
    """
    bands, parts = layer.op.bands(layer), list(layer.op.layers(layer))
    results = [part.output for part in parts]
    if bands is None or any(_row_elements(y) == 1 for y in results):
        return False
    if not layer.op.by_rows and any(y.dtype is not layer.input(0).dtype for y in results):
        return False
    if layer.op.ends_in_sums(layer):
        parts.pop()
    return all(
        link.kernel.refusal(_in_band(part, stage)) is None
        for link, part, kinds in zip(layer.op.links, parts, bands.kinds, strict=False)
        for stage in kinds
    )


class BandsOfRows(Kernel[Banded]):
    """The kernels of the operators, called in turn for each band."""

    name = "bands of rows"
    constraints = (divisible,)

    def scratch_bytes(self, layer: Layer[Banded], target: Target) -> int:
        return self._layout(layer, target).bytes

    def overlays(self, layer: Layer[Banded]) -> tuple[Overlay, ...]:
        """A band reads all it needs of the input before it writes."""
        if layer.op.ends_in_sums(layer) or layer.op.by_rows:
            return ()
        bands, x, y = self._bands(layer), layer.input(0), layer.output
        ends = [band.place[1] + band.stages[-1].rows for band in bands.bands]
        starts = [min(band.place[0], band.place[2]) for band in bands.bands[1:]]
        leads = [
            end * _row_elements(y) * y.dtype.bytes - start * _row_elements(x) * x.dtype.bytes
            for end, start in zip(ends, starts, strict=False)
        ]
        return if_shared(layer, Overlay(0, -whole_words(max([0, *leads]))))

    def runtime_sources(self, layer: Layer[Banded]) -> tuple[str, ...]:
        linked = list(self._links(layer))
        if layer.op.ends_in_sums(layer):
            linked.pop()
        return tuple(source for link, part in linked for source in link.kernel.runtime_sources(part))

    def emit(self, layer: Layer[Banded], sheet: Sheet) -> None:
        layout = self._layout(layer, sheet.target)
        self._declare(layer, sheet, layout)
        parts = [
            PartSheet(
                part,
                sheet.target,
                f"{sheet.prefix}_{i + 1}",
                model_tables=sheet.model_tables,
                lines=sheet.lines,
                tables=sheet.tables,
                records=sheet.records,
                headers=sheet.headers,
                memory=_work(layout.work[i]),
            )
            for i, (_, part) in enumerate(self._links(layer))
        ]
        if layer.op.by_rows:
            self._one_band(layer, sheet, parts, layout)
            return
        for run in self._bands(layer).runs():
            if len(run) == 1:
                self._band(layer, sheet, parts, layout, run[0], (0, 0, 0))
                continue
            with sheet.block(f"for (int32_t band = 0; band < {len(run)}; band++) {{"):
                self._band(layer, sheet, parts, layout, run[0], _steps(run))
        if layer.op.ends_in_sums(layer):
            self._means(layer, sheet, parts)

    def _one_band(
        self, layer: Layer[Banded], sheet: Sheet, parts: Sequence[PartSheet], layout: Layout
    ) -> None:
        """The band whose number the function gets, as soon as its rows of the input are there."""
        sheet.more_parameters.append(("int32_t band", "band"))
        first, count = 0, len(self._bands(layer).bands)
        for run in self._bands(layer).runs():
            end = first + len(run)
            with sheet.block(f"if (band < {end}) {{"):
                self._at(layer, sheet, parts, layout, run, first)
                if end < count:
                    sheet.line("return;")
            first = end
        if layer.op.ends_in_sums(layer):
            with sheet.block(f"if (band == {count - 1}) {{"):
                self._means(layer, sheet, parts)

    def _at(
        self,
        layer: Layer[Banded],
        sheet: Sheet,
        parts: Sequence[PartSheet],
        layout: Layout,
        run: Sequence[Band],
        first: int,
    ) -> None:
        """One of the bands of a run that starts with band ``first``."""
        steps = _steps(run) if len(run) > 1 else (0, 0, 0)
        if first and steps[1]:
            sheet.line(f"band -= {first};")
        self._band(layer, sheet, parts, layout, run[0], steps)

    def _means(self, layer: Layer[Banded], sheet: Sheet, parts: Sequence[PartSheet]) -> None:
        *_, (link, part) = self._links(layer)
        last = parts[-1]
        last.layer, last.depth, last.result = part, sheet.depth, sheet.y()
        link.kernel.emit_means(part, last, SUMS)

    def _declare(self, layer: Layer[Banded], sheet: Sheet, layout: Layout) -> None:
        """The scratch memory: rows of the tensors inside the chain, then the kernels' own scratch."""
        sheet.line(f"int8_t *const memory = {sheet.scratch};")
        for i, (start, (_, part)) in enumerate(zip(layout.buffers, self._links(layer), strict=False)):
            type_ = part.output.dtype.c
            place = f"&memory[{start}]" if type_ == "int8_t" else f"(void *)&memory[{start}]"
            sheet.line(f"{type_} *const {self._buffer(layer, i)} = {place};")
        if sums := self._sum_bytes(layer):
            sheet.include("<string.h>")
            sheet.line(f"int32_t *const {SUMS} = (void *)&memory[{layout.sums}];")
        used = zip(layout.work, self._work_bytes(layer, sheet.target), strict=True)
        for start in sorted({start for start, size in used if size}):
            sheet.line(f"void *const {_work(start)} = &memory[{start}];")
        sheet.line()
        if sums and layer.op.by_rows:
            with sheet.block("if (band == 0) {"):
                sheet.line(f"memset({SUMS}, 0, {sums});")
        elif sums:
            sheet.line(f"memset({SUMS}, 0, {sums});")

    def _band(
        self,
        layer: Layer[Banded],
        sheet: Sheet,
        parts: Sequence[PartSheet],
        layout: Layout,
        band: Band,
        steps: tuple[int, int, int],
    ) -> None:
        """One band; ``steps`` are the rows of input, output and side from one to the next, in a loop."""
        main, last = layer.op.main, len(parts) - 1
        for i, ((link, part), stage) in enumerate(zip(self._links(layer), band.in_order, strict=True)):
            if not stage.rows or part.op.by_rows:  # rows that arrive are there already
                continue
            begins_side = 0 < main == i < last
            step = steps[2] if begins_side else steps[0] if i == 0 else 0
            before = main - 1 if i == last else i - 1
            source = sheet.x() if i == 0 or begins_side else self._buffer(layer, before)
            result = sheet.y() if i == last else self._buffer(layer, i)
            x_row, y_row = _row_elements(part.input(0)), _row_elements(part.output)
            own = parts[i]
            own.layer, own.depth = _in_band(part, stage), sheet.depth
            chain = _element(source, stage.source * x_row, step * x_row)
            place = (stage.into * y_row, steps[1] * y_row if i == last else 0)
            own.sources = [chain]
            if link.residual is not None:
                beside = self._buffer(layer, last - 1) if layer.op.side else _element(sheet.x(), *place)
                own.sources = _with_residual(link, [chain], beside)
            own.result = _element(result, *place)
            if i == last and layer.op.ends_in_sums(layer):
                link.kernel.emit_sums(own.layer, own, SUMS)
            else:
                link.kernel.emit(own.layer, own)
        linked = list(self._links(layer))
        for i in sorted(range(len(band.moves)), key=lambda i: layout.buffers[i]):
            if (move := band.moves[i]) is not None:
                part = linked[i][1]
                row = _row_elements(part.output)
                copy = "memcpy" if move.start >= move.rows else "memmove"
                size = move.rows * row * part.output.dtype.bytes
                sheet.include("<string.h>")
                sheet.line(f"{copy}(rows{i + 1}, &rows{i + 1}[{move.start * row}], {size});")

    def _bands(self, layer: Layer[Banded]) -> Bands:
        bands = layer.op.bands(layer)
        assert bands is not None, "checked by its constraint"
        return bands

    def _links(self, layer: Layer[Banded]) -> Iterator[tuple[Link, Layer]]:
        return zip(layer.op.links, layer.op.layers(layer), strict=True)

    def _buffer(self, layer: Layer[Banded], link: int) -> str:
        """The C name of the buffer in which a link that is not the last leaves its rows."""
        main = layer.op.main
        return f"rows{link + 1}" if link < main else f"side{link - main + 1}"

    def arrival_offset(self, layer: Layer[Banded], target: Target) -> int:
        """Where in the scratch memory rows of the input arrive."""
        return self._layout(layer, target).buffers[0]

    def _layout(self, layer: Layer[Banded], target: Target) -> Layout:
        """Where rows of the tensors inside the chain lie, and the kernels' own scratch memory."""
        linked = list(self._links(layer))

        @lru_cache
        def lead(i: int, stage: Stage) -> Lead | None:
            link, part = linked[i]
            if part.input(0).dtype is not part.output.dtype:  # elements of different sizes stay aligned
                return None
            ways = link.kernel.overlays(_in_band(part, stage))
            found = next((way for way in ways if way.input == 0 and not way.backwards), None)
            return Lead(found.distance, found.fixed) if found else None

        return Contents(
            self._bands(layer),
            tuple(_row_elements(part.output) * part.output.dtype.bytes for _, part in linked[:-1]),
            self._work_bytes(layer, target),
            self._sum_bytes(layer),
            lambda i, stage: lead(i, replace(stage, into=0, source=0)),
        ).layout()

    def _sum_bytes(self, layer: Layer[Banded]) -> int:
        return _aligned(4 * layer.output.elements) if layer.op.ends_in_sums(layer) else 0

    def _work_bytes(self, layer: Layer[Banded], target: Target) -> tuple[int, ...]:
        """Scratch memory of each kernel, in the band in which it needs the most."""
        return tuple(
            max((link.kernel.scratch_bytes(_in_band(part, stage), target) for stage in kinds), default=0)
            if not link.kernel.sums_rows(part)
            else 0
            for (link, part), kinds in zip(self._links(layer), self._bands(layer).kinds, strict=True)
        )


def _steps(run: Sequence[Band]) -> tuple[int, int, int]:
    """The rows of input, output and side from one band of a run to the next."""
    (x0, y0, side0), (x1, y1, side1) = run[0].place, run[1].place
    return x1 - x0, y1 - y0, side1 - side0


def _work(start: int) -> str:
    """The C name of working memory at a place."""
    return f"work{start}"


def _element(pointer: str, offset: int, step: int) -> str:
    """A pointer to an element, in parentheses: kernels may write an index after it."""
    terms = [str(offset)] if offset else []
    terms += [f"band * {step}"] if step else []
    return f"({' + '.join([pointer, *terms])})" if terms else pointer


register_kernels(Banded, BandsOfRows())
