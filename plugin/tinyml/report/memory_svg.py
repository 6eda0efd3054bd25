# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The memory plan as a picture: time across, addresses up, tensors as blocks, the peak marked."""

from __future__ import annotations

from html import escape

from tinyml.base.naming import shape_text
from tinyml.report.facts import LayerFacts, Report, TensorFacts
from tinyml.report.palette import color

WIDTH, HEIGHT = 1000, 380
NARROW = 420  # the same picture for a phone, where words of the wide one would be too small
LEFT, RIGHT, TOP, BOTTOM = 74, 12, 30, 46


class _Scale:
    """From steps and bytes to coordinates."""

    def __init__(self, report: Report, width: int) -> None:
        self.width = width
        self.steps = len(report.layers) + 1  # outputs stay after the last layer
        self.bytes = max(report.arena_bytes, 1)

    def x(self, step: float) -> float:
        return LEFT + (self.width - LEFT - RIGHT) * step / self.steps

    def y(self, address: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * address / self.bytes


def memory_svgs(report: Report) -> str:
    """The picture for a screen and the one for a phone; the style sheet shows one of them."""
    return "\n".join((memory_svg(report), memory_svg(report, NARROW)))


def memory_svg(report: Report, width: int = WIDTH) -> str:
    """A tensor has the colour of the operator that computes it."""
    scale = _Scale(report, width)
    size = "narrow" if width == NARROW else "broad"
    makers = {name: layer for layer in report.layers for name in layer.outputs}
    parts = [
        f'<svg viewBox="0 0 {width} {HEIGHT}" role="group" class="memory {size}" '
        f'aria-label="Memory plan: {report.arena_bytes} bytes over {len(report.layers)} layers">',
        f'<defs><pattern id="hatch-{size}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" class="hatch"/></pattern></defs>',
        *_grid(report, scale),
        *(_tensor(tensor, makers.get(tensor.name), scale) for tensor in report.tensors),
        *(_label(tensor, scale) for tensor in report.tensors if _is_alone(tensor, report.tensors)),
        *(_scratch(layer, scale) for layer in report.layers if layer.scratch_offset is not None),
        *_peak(report, scale),
        "</svg>",
    ]
    return "\n".join(parts)


def _rect(x0: float, x1: float, y0: float, y1: float, attributes: str, title: str) -> str:
    return (
        f'<rect x="{x0:.1f}" y="{y1:.1f}" width="{x1 - x0:.1f}" height="{max(y0 - y1, 0.8):.1f}" '
        f"{attributes}><title>{escape(title)}</title></rect>"
    )


def _tensor(tensor: TensorFacts, maker: LayerFacts | None, scale: _Scale) -> str:
    x0, x1 = scale.x(tensor.first), scale.x(tensor.last + 1)
    y0, y1 = scale.y(tensor.offset), scale.y(tensor.offset + tensor.bytes)
    shape = shape_text(tensor.shape)
    when = (
        f"layers {tensor.first} to {tensor.last}" if tensor.last > tensor.first else f"layer {tensor.first}"
    )
    origin = f"{maker.label} {maker.name}" if maker else "input of the model"
    title = (
        f"{tensor.name}\n{origin}\n{shape} {tensor.dtype}, {tensor.bytes:,} bytes\n"
        f"addresses {tensor.offset:,} to {tensor.offset + tensor.bytes:,}, {when}"
    )
    fill = color(maker.label) if maker else "var(--input)"
    layer = _belongs_to(maker, f"{tensor.name}, {tensor.bytes:,} bytes, {when}") if maker else ""
    return _rect(x0 + 0.5, x1 - 0.5, y0, y1, f'class="tensor"{layer} style="fill:{fill}"', title)


def _belongs_to(layer: LayerFacts, spoken: str) -> str:
    """Attributes of a block that selects a layer."""
    return f' data-layer="{layer.step}" role="button" tabindex="-1" aria-label="{escape(spoken)}"'


def _is_alone(tensor: TensorFacts, others: list[TensorFacts]) -> bool:
    """Whether no other tensor covers it in the picture, so that a label is readable."""
    return not any(
        other is not tensor
        and min(tensor.last, other.last) >= max(tensor.first, other.first)
        and tensor.offset < other.offset + other.bytes
        and other.offset < tensor.offset + tensor.bytes
        for other in others
    )


def _label(tensor: TensorFacts, scale: _Scale) -> str:
    """The shape, if there is room for it."""
    x0, x1 = scale.x(tensor.first), scale.x(tensor.last + 1)
    y0, y1 = scale.y(tensor.offset), scale.y(tensor.offset + tensor.bytes)
    shape = shape_text(tensor.shape)
    if y0 - y1 < 13 or x1 - x0 < 6.4 * len(shape) + 6:
        return ""
    return f'<text x="{(x0 + x1) / 2:.1f}" y="{(y0 + y1) / 2 + 4:.1f}" class="inside">{shape}</text>'


def _scratch(layer: LayerFacts, scale: _Scale) -> str:
    offset = layer.scratch_offset or 0
    title = f"working memory of {layer.op} {layer.name}\n{layer.scratch_bytes:,} bytes at {offset:,}"
    x0, x1 = scale.x(layer.step), scale.x(layer.step + 1)
    attributes = 'class="scratch"' + _belongs_to(layer, f"working memory of layer {layer.step}")
    return _rect(
        x0 + 0.5, x1 - 0.5, scale.y(offset), scale.y(offset + layer.scratch_bytes), attributes, title
    )


def _grid(report: Report, scale: _Scale) -> list[str]:
    parts = []
    for fraction in (0, 0.25, 0.5, 0.75, 1):
        address = round(report.arena_bytes * fraction)
        y = scale.y(address)
        parts.append(f'<line x1="{LEFT}" x2="{scale.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="tick end">{address:,}</text>')
    every = max(1, -(-30 * len(report.layers) // (scale.width - LEFT - RIGHT)))
    y = HEIGHT - BOTTOM + 16
    parts += [
        f'<text x="{scale.x(layer.step + 0.5):.1f}" y="{y}" class="tick">{layer.step}</text>'
        for layer in report.layers[::every]
    ]
    parts.append(
        f'<text x="{(LEFT + scale.width) / 2}" y="{HEIGHT - 8}" class="tick">'
        "layer, in order of execution</text>"
    )
    parts.append(
        f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" class="tick">'
        "address in the arena</text>"
    )
    return parts


def _peak(report: Report, scale: _Scale) -> list[str]:
    x0, x1 = scale.x(report.peak_step), scale.x(report.peak_step + 1)
    words = f"peak: layer {report.peak_step}, {report.arena_lower_bound_bytes:,} bytes in use"
    anchor = "end" if x0 + 7.5 * len(words) > scale.width else "start"
    at = min(max(x1, 7.5 * len(words)), scale.width - RIGHT) if anchor == "end" else x0
    return [
        f'<rect x="{x0:.1f}" y="{TOP - 6}" width="{x1 - x0:.1f}" '
        f'height="{HEIGHT - TOP - BOTTOM + 6}" class="peak"/>',
        f'<text x="{at:.1f}" y="{TOP - 12}" class="peaklabel" style="text-anchor:{anchor}">{words}</text>',
    ]
