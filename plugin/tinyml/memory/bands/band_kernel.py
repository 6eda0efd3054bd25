# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How a chain of layers is computed in bands: the C of ``Banded``, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tinyml.cores.targets import Target
from tinyml.ir import Layer
from tinyml.memory.bands.band_layout import ALIGNMENT, Contents, Layout, Lead
from tinyml.memory.bands.band_rows import Band, Bands, Stage
from tinyml.memory.bands.band_sheet import PartSheet
from tinyml.memory.bands.banded import Banded, Link, divisible, with_residual
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet, register_kernels
from tinyml.ops.shared.overlay import if_shared, whole_words

SUMS = "sums"  # the C name of those of the last link, if it adds up rows


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
        x_bytes, y_bytes = (layer.op.row_elements(t) * t.dtype.bytes for t in (x, y))
        ends = [band.place[1] + band.stages[-1].rows for band in bands.bands]
        starts = [min(band.place[0], band.place[2]) for band in bands.bands[1:]]
        leads = [end * y_bytes - start * x_bytes for end, start in zip(ends, starts, strict=False)]
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
                whole=sheet,
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
            with sheet.repeat(len(run)):
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
            with sheet.block(f"if (band < {end}) {{", times=len(run)):
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
        with last.counted(len(parts) - 1):
            (link.kernel.play_means if sheet.plays else link.kernel.emit_means)(part, last, SUMS)

    def _declare(self, layer: Layer[Banded], sheet: Sheet, layout: Layout) -> None:
        """The scratch memory: rows of the tensors inside the chain, then the kernels' own scratch."""
        sheet.divide_scratch()
        for i, (start, (_, part)) in enumerate(zip(layout.buffers, self._links(layer), strict=False)):
            sheet.buffer(self._buffer(layer, i), part.output.dtype.c, start)
        if sums := self._sum_bytes(layer):
            sheet.buffer(SUMS, "int32_t", layout.sums)
        used = zip(layout.work, self._work_bytes(layer, sheet.target), strict=True)
        for start in sorted({start for start, size in used if size}):
            sheet.buffer(_work(start), "void", start)
        sheet.line()
        if sums and layer.op.by_rows:
            with sheet.block("if (band == 0) {"):
                sheet.clear(SUMS, sums)
        elif sums:
            sheet.clear(SUMS, sums)

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
            x_row, y_row = (layer.op.row_elements(t) for t in (part.input(0), part.output))
            own = parts[i]
            own.layer, own.depth = layer.op.in_band(part, stage), sheet.depth
            chain = sheet.element(source, stage.source * x_row, step * x_row)
            place = (stage.into * y_row, steps[1] * y_row if i == last else 0)
            own.sources = [chain]
            if link.residual is not None:
                beside = self._buffer(layer, last - 1) if layer.op.side else sheet.element(sheet.x(), *place)
                own.sources = with_residual(link, [chain], beside)
            own.result = sheet.element(result, *place)
            with own.counted(i):
                if i == last and layer.op.ends_in_sums(layer):
                    (link.kernel.play_sums if sheet.plays else link.kernel.emit_sums)(own.layer, own, SUMS)
                else:
                    (link.kernel.play if sheet.plays else link.kernel.emit)(own.layer, own)
        linked = list(self._links(layer))
        for i in sorted(range(len(band.moves)), key=lambda i: layout.buffers[i]):
            if (move := band.moves[i]) is not None:
                part = linked[i][1]
                row = layer.op.row_elements(part.output)
                sheet.move(f"rows{i + 1}", move.start * row, move.rows * row, part.output.dtype.bytes)

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
            ways = link.kernel.overlays(layer.op.in_band(part, stage))
            found = next((way for way in ways if way.input == 0 and not way.backwards), None)
            return Lead(found.distance, found.fixed) if found else None

        return Contents(
            self._bands(layer),
            tuple(layer.op.row_elements(part.output) * part.output.dtype.bytes for _, part in linked[:-1]),
            self._work_bytes(layer, target),
            self._sum_bytes(layer),
            lambda i, stage: lead(i, replace(stage, into=0, source=0)),
        ).layout()

    def _sum_bytes(self, layer: Layer[Banded]) -> int:
        return _aligned(4 * layer.output.elements) if layer.op.ends_in_sums(layer) else 0

    def _work_bytes(self, layer: Layer[Banded], target: Target) -> tuple[int, ...]:
        """Scratch memory of each kernel, in the band in which it needs the most."""
        return tuple(
            max(
                (link.kernel.scratch_bytes(layer.op.in_band(part, stage), target) for stage in kinds),
                default=0,
            )
            if not link.kernel.sums_rows(part)
            else 0
            for (link, part), kinds in zip(self._links(layer), self._bands(layer).kinds, strict=True)
        )


def _steps(run: Sequence[Band]) -> tuple[int, int, int]:
    """The rows of input, output and side from one band of a run to the next."""
    (x0, y0, side0), (x1, y1, side1) = run[0].place, run[1].place
    return x1 - x0, y1 - y0, side1 - side0


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _work(start: int) -> str:
    """The C name of working memory at a place."""
    return f"work{start}"


BANDS_OF_ROWS = BandsOfRows()

register_kernels(Banded, BANDS_OF_ROWS)
