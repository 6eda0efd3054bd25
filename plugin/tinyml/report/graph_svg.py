# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The graph as a picture: layers from top to bottom, branches side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tinyml.base.naming import shape_text
from tinyml.report.facts import LayerFacts, Report
from tinyml.report.palette import color
from tinyml.report.text_layout import layout

BOX_WIDTH, BOX_HEIGHT, ROW, GAP, MARGIN = 214, 54, 78, 22, 12
PLAIN = ("", "None", "False", "0", "1", "0x0", "1x1", "0x0x0x0", "none")
"""Values of attributes that say nothing."""
HIDDEN = ("clamp", "halves", "beta", "dtype", "quant", "shape", "extents")
"""Attributes that the shape shows, or that only the details name."""
ACTIVATIONS = {"0.0xinf": "relu", "0.0x6.0": "relu6", "-1.0x1.0": "clip -1 to 1"}
"""Limits of a layer that have a name."""


def graph_svg(report: Report) -> str:
    """Node 0 is the model's input, the last its output; the layers lie between."""
    edges = _edges(report)
    last = len(report.layers) + 1
    placed = layout(last + 1, [edge[:2] for edge in edges], BOX_WIDTH, GAP)
    width = placed.right - placed.left + 2 * MARGIN
    height = max(placed.rank) * ROW + BOX_HEIGHT + 2 * MARGIN
    centres = [x - placed.left + MARGIN for x in placed.x]
    parts = [
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'class="graph" role="group" aria-label="Graph of {len(report.layers)} layers">'
    ]
    for (start, end, name), route in zip(edges, placed.routes, strict=True):
        path = _path([x - placed.left + MARGIN for x in route], placed.rank[start])
        parts.append(
            f'<path d="{path}" class="edge" data-from="{start - 1}" data-to="{end - 1}">'
            f"<title>{escape(name)}</title></path>"
        )
    parts.append(_port(report.inputs, "input", centres[0], placed.rank[0]))
    for layer, x, rank in zip(report.layers, centres[1:], placed.rank[1:], strict=False):
        parts.append(_layer(layer, x, rank))
    parts.append(_port(report.outputs, "output", centres[last], placed.rank[last]))
    return "\n".join([*parts, "</svg>"])


def _edges(report: Report) -> list[tuple[int, int, str]]:
    """From the node that computes a tensor to a node that reads it, with the tensor's name."""
    source = {str(port["name"]): 0 for port in report.inputs}
    source.update({name: layer.step + 1 for layer in report.layers for name in layer.outputs})
    found = [
        (source[name], layer.step + 1, name)
        for layer in report.layers
        for name in dict.fromkeys(layer.inputs)
        if name in source and source[name] <= layer.step
    ]
    names = (str(port["name"]) for port in report.outputs)
    found += [(source[name], len(report.layers) + 1, name) for name in names if name in source]
    return list(dict.fromkeys(found))


def _path(route: Sequence[float], rank: int) -> str:
    """A curve through the waypoints, straight down where it passes beside boxes."""
    top = MARGIN + rank * ROW + BOX_HEIGHT
    path = f"M{route[0]:.1f} {top}"
    for index, x in enumerate(route[1:]):
        end = top + ROW - BOX_HEIGHT
        middle = (top + end) / 2
        path += f" C{route[index]:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {end}"
        top = end
        if index < len(route) - 2:
            top = end + BOX_HEIGHT
            path += f" V{top}"
    return path


def _layer(layer: LayerFacts, x: float, rank: int) -> str:
    shape = shape_text(layer.shape)
    title = f"{layer.op} {layer.name}\n{layer.kernel} ({layer.library})\n{layer.macs:,} MACs"
    title = f"{title}\n{_detail(layer)}".rstrip()
    spoken = f"Layer {layer.step}, {layer.label}, {shape}"
    return (
        f'<g class="{"node faint" if layer.free else "node"}" data-layer="{layer.step}" role="button" '
        f'tabindex="-1" aria-label="{escape(spoken)}">'
        + _box(x, rank, f"{layer.step}  {layer.label}", shape, color(layer.label), title, _detail(layer))
    )


def _detail(layer: LayerFacts) -> str:
    """The shape of its weights, and the attributes that say something."""
    weights = next(
        (one.shape for one in layer.operands if one.role == "constant" and len(one.shape) > 1), None
    )
    parts = [shape_text(weights)] if weights else []
    shown = {name: value for name, value in layer.attributes.items() if name not in HIDDEN}
    parts += [f"{name} {_rounded(value)}" for name, value in shown.items() if value not in PLAIN]
    parts += [ACTIVATIONS[limits]] if (limits := layer.attributes.get("clamp", "")) in ACTIVATIONS else []
    return ", ".join(parts)


def _rounded(value: str) -> str:
    """A number with six digits, such as 1e-05 for the float32 nearest to it; other texts as they are."""
    try:
        return f"{float(value):.6g}" if "." in value or "e" in value else value
    except ValueError:
        return value


def _port(ports: Sequence[dict[str, object]], what: str, x: float, rank: int) -> str:
    texts = []
    for port in ports:
        shape = port["shape"]
        texts.append(f"{shape_text(shape) if isinstance(shape, list) else ''} {port['dtype']}".strip())
    names = ", ".join(str(port["name"]) for port in ports)
    return '<g class="port">' + _box(x, rank, what, ", ".join(texts), "var(--input)", names)


def _box(x: float, rank: int, first: str, second: str, fill: str, title: str, third: str = "") -> str:
    left, y = x - BOX_WIDTH / 2, MARGIN + rank * ROW
    return (
        f"<title>{escape(title)}</title>"
        f'<rect x="{left:.1f}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" class="box"/>'
        f'<rect x="{left:.1f}" y="{y}" width="8" height="{BOX_HEIGHT}" rx="3" style="fill:{fill}"/>'
        f'<text x="{left + 16:.1f}" y="{y + 16}">{escape(_fitting(first))}</text>'
        f'<text x="{left + 16:.1f}" y="{y + 31}" class="second">{escape(_fitting(second))}</text>'
        + (
            f'<text x="{left + 16:.1f}" y="{y + 46}" class="second">{escape(_fitting(third))}</text>'
            if third
            else ""
        )
        + "</g>"
    )


def _fitting(text: str) -> str:
    return text if len(text) <= 31 else text[:29] + "…"
