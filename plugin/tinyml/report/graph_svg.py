# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The graph as a picture: layers from top to bottom in the order of execution, edges beside them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tinyml.report.facts import Report

ROW, BOX_WIDTH, BOX_HEIGHT, LEFT, LANE = 38, 430, 27, 20, 12


@dataclass(frozen=True)
class _Edge:
    """From the row that computes a tensor to a row that reads it; row 0 is the model's input."""

    start: int
    end: int
    title: str


def graph_svg(report: Report, colors: dict[str, str]) -> str:
    edges = _edges(report)
    lanes = _lanes([edge for edge in edges if edge.end - edge.start > 1])
    rows = len(report.layers) + 2
    width = LEFT + BOX_WIDTH + 24 + LANE * (max(lanes.values(), default=0) + 1)
    height = rows * ROW + 6
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" class="graph" role="img" '
        f'aria-label="Graph of {len(report.layers)} layers">'
    ]
    parts += [_draw_edge(edge, lanes.get(edge)) for edge in edges]
    parts.append(_box(0, ", ".join(_port(port) for port in report.inputs), "var(--input)", "the inputs"))
    for layer in report.layers:
        shape = "x".join(map(str, layer.shape)) or "scalar"
        title = f"{layer.op} {layer.name}\n{layer.kernel} ({layer.library})\n{layer.macs:,} MACs"
        label = f"{layer.step}  {layer.label}  {shape}" + ("  (shares memory)" if layer.free else "")
        parts.append(_box(layer.step + 1, label, colors[layer.label], title, layer.free))
    parts.append(
        _box(rows - 1, ", ".join(_port(port) for port in report.outputs), "var(--input)", "the outputs")
    )
    return "\n".join([*parts, "</svg>"])


def _port(port: dict[str, object]) -> str:
    shape = port["shape"]
    extents = "x".join(map(str, shape)) if isinstance(shape, list) else ""
    return f"{port['name']}  {extents} {port['dtype']}"


def _edges(report: Report) -> list[_Edge]:
    source = {str(port["name"]): 0 for port in report.inputs}
    source.update({name: layer.step + 1 for layer in report.layers for name in layer.outputs})
    found = [
        _Edge(source[name], layer.step + 1, name)
        for layer in report.layers
        for name in dict.fromkeys(layer.inputs)
        if name in source
    ]
    end = len(report.layers) + 1
    found += [
        _Edge(source[str(port["name"])], end, str(port["name"]))
        for port in report.outputs
        if str(port["name"]) in source
    ]
    return list(dict.fromkeys(found))


def _lanes(edges: list[_Edge]) -> dict[_Edge, int]:
    """A column beside the boxes for each long edge, so that edges do not overlap."""
    lanes: dict[_Edge, int] = {}
    for edge in sorted(edges, key=lambda e: (e.end - e.start, e.start)):
        taken = {lane for other, lane in lanes.items() if other.start < edge.end and edge.start < other.end}
        lanes[edge] = next(lane for lane in range(len(edges) + 1) if lane not in taken)
    return lanes


def _middle(row: int) -> float:
    return row * ROW + 4 + BOX_HEIGHT / 2


def _draw_edge(edge: _Edge, lane: int | None) -> str:
    title = f"<title>{escape(edge.title)}</title>"
    if lane is None:
        x = LEFT + 40
        y0, y1 = _middle(edge.start) + BOX_HEIGHT / 2, _middle(edge.end) - BOX_HEIGHT / 2
        return f'<path d="M{x} {y0} V{y1}" class="edge">{title}</path>'
    x0, x1 = LEFT + BOX_WIDTH, LEFT + BOX_WIDTH + 14 + LANE * lane
    y0, y1 = _middle(edge.start) + 5, _middle(edge.end) - 5
    path = f"M{x0} {y0} H{x1 - 6} Q{x1} {y0} {x1} {y0 + 6} V{y1 - 6} Q{x1} {y1} {x1 - 6} {y1} H{x0}"
    return f'<path d="{path}" class="edge">{title}</path>'


def _box(row: int, label: str, color: str, title: str, faint: bool = False) -> str:
    y = row * ROW + 4
    shown = label if len(label) <= 62 else label[:59] + "..."
    return (
        f'<g class="{"node faint" if faint else "node"}"><title>{escape(title)}</title>'
        f'<rect x="{LEFT}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<rect x="{LEFT}" y="{y}" width="7" height="{BOX_HEIGHT}" rx="2" style="fill:{color}"/>'
        f'<text x="{LEFT + 18}" y="{y + 18}">{escape(shown)}</text></g>'
    )
