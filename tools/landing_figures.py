# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of the site's first page: a model that becomes C and an arena, the logo, bars of figures."""

from __future__ import annotations

from pathlib import Path

from tinyml.bench.overview import KERNELS, PEER, core
from tinyml.bench.peers import peers
from tinyml.bench.record import load

ROOT = Path(__file__).resolve().parent.parent
MACHINE = "qemu-cortex-m4"
ACCENT = "#0f766e"
STYLE = f"""<style>
text {{ font: 13px system-ui, sans-serif; fill: #1c2330; }}
.soft {{ fill: #566173; font-size: 12px; }}
.code {{ font: 12px ui-monospace, Menlo, Consolas, monospace; }}
.edge {{ stroke: #566173; fill: none; stroke-width: 1.5; }}
.card {{ fill: #f4f7f8; stroke: #cfd8dc; }}
.ours {{ fill: {ACCENT}; }} .theirs {{ fill: #b4bfc9; }}
.a {{ fill: #2dd4bf; }} .b {{ fill: {ACCENT}; }} .c {{ fill: #94a3b8; }} .d {{ fill: #5eead4; }}
.inside {{ fill: #08201d; }} .on {{ fill: #ffffff; }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6eaf0; }} .soft {{ fill: #a3aebd; }} .edge {{ stroke: #a3aebd; }}
.card {{ fill: #182024; stroke: #37444b; }} .ours {{ fill: #2dd4bf; }} .theirs {{ fill: #5b6772; }}
.inside {{ fill: #08201d; }} .on {{ fill: #ffffff; }}
}}
</style>"""
LAYERS = (("input", "c"), ("conv", "a"), ("conv", "a"), ("pool", "d"), ("dense", "b"))
CODE = (
    "int kws_run(void)",
    "{",
    "    kws_conv1(AT(0), AT(2048));",
    "    kws_conv2(AT(2048), AT(0));",
    "    kws_pool(AT(0), AT(0));",
    "    kws_dense(AT(0), AT(512));",
    "    return 0;",
    "}",
)


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join([head, f"<title>{title}</title>", STYLE, *parts, "</svg>", ""])


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}" xml:space="preserve">{words}</text>'
    )


def rect(x: float, y: float, width: float, height: float, kind: str, round_: float = 4) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" class="{kind}"/>'


def _arrow(x: float, y: float) -> str:
    return f'<path d="M{x:g} {y:g}h34m-7 -6l7 6l-7 6" class="edge"/>'


def _arrow_down(x: float, y: float) -> str:
    return f'<path d="M{x:g} {y:g}v22m-6 -7l6 7l6 -7" class="edge"/>'


def _layer(x: float, y: float, width: float, name: str, kind: str) -> list[str]:
    words = text(x + width / 2, y + 18, name, "on" if kind == "b" else "inside", "middle")
    return [rect(x, y, width, 28, kind), words]


def _code(x: float, y: float, width: float) -> list[str]:
    lines = [text(x + 14, y + 26 + 22 * number, line, "code") for number, line in enumerate(CODE)]
    return [rect(x, y, width, 196, "card", 8), *lines]


def _arena(x: float, y: float, width: float) -> list[str]:
    places = ((0, 1, 0, 2, "c"), (0, 2, 2, 4, "a"), (1, 3, 0, 2, "a"), (2, 4, 2, 3, "d"), (3, 5, 0, 1, "b"))
    step = (width - 15) / 5
    blocks = [
        rect(
            x + 8 + step * first,
            y + 188 - 30 * (low + height),
            step * (last - first) - 2,
            30 * height - 2,
            kind,
            2,
        )
        for first, last, low, height, kind in places
    ]
    return [rect(x, y, width, 196, "card", 8), *blocks]


TITLE = "A model becomes C, and its tensors share one arena"
CAPTIONS = ("model.onnx", "plain C, one call per layer", "one arena, planned by the compiler")


def landing() -> str:
    """A model, its C, its arena."""
    parts = [text(x, 20, words, "soft", "middle") for x, words in zip((70, 310, 606), CAPTIONS, strict=True)]
    for number, (name, kind) in enumerate(LAYERS):
        y = 34 + 42 * number
        parts += _layer(20, y, 100, name, kind)
        if number + 1 < len(LAYERS):
            parts.append(f'<path d="M70 {y + 28}v14" class="edge"/>')
    parts += [_arrow(136, 136), *_code(186, 34, 248), _arrow(450, 136), *_arena(500, 34, 212)]
    parts.append(text(606, 250, "time: layer by layer", "soft", "middle"))
    return svg(730, 262, TITLE, parts)


def landing_narrow() -> str:
    """The same from top to bottom, for a phone."""
    parts = [text(180, y, words, "soft", "middle") for y, words in zip((16, 108, 364), CAPTIONS, strict=True)]
    for number, (name, kind) in enumerate(LAYERS):
        parts += _layer(4 + 72 * number, 28, 64, name, kind)
        if number + 1 < len(LAYERS):
            parts.append(f'<path d="M{68 + 72 * number} 42h8" class="edge"/>')
    parts += [_arrow_down(180, 66), *_code(40, 118, 280), _arrow_down(180, 322), *_arena(40, 376, 280)]
    parts.append(text(180, 590, "time: layer by layer", "soft", "middle"))
    return svg(360, 600, TITLE, parts)


def logo() -> str:
    """Blocks that share an arena."""
    blocks = ((2, 34, 18, 28, "b"), (22, 18, 18, 28, "a"), (42, 34, 20, 28, "b"), (22, 50, 18, 12, "d"))
    return svg(64, 64, "west-tinyml", [rect(x, y - 8, w, h, kind, 3) for x, y, w, h, kind in blocks])


COLUMNS = ("instructions of one run", "bytes of flash", "bytes of RAM")
BESIDE = "Figures beside those of TensorFlow Lite Micro with CMSIS-NN"


def _pairs(machine: str) -> list[tuple[str, list[tuple[int, int | None]]]]:
    """Models with our figures and those of the peer, in the order of ``COLUMNS``."""
    rows = load(ROOT / "benchmarks" / "record.json").rows
    ours = {row.sha256: row for row in rows if (row.kernels, row.machine) == (KERNELS, machine)}
    found = []
    for model in peers().models.values():
        row = ours.get(model.sha256)
        theirs = next((one for one in peers().of(model.sha256, machine) if one.peer == PEER), None)
        if row is None or theirs is None or None in (theirs.constants_bytes, theirs.code_bytes):
            continue
        flash = (theirs.constants_bytes or 0) + (theirs.code_bytes or 0)
        pairs: list[tuple[int, int | None]] = [
            (row.instructions, theirs.instructions),
            (row.constants_bytes + row.code_bytes, flash),
            (row.ram_bytes, theirs.ram_bytes),
        ]
        found.append((model.title.replace("MLPerf Tiny ", "").partition(" (")[0], pairs))
    return found


def _pair(x: float, y: float, mine: int, other: int | None, length: float) -> list[str]:
    """Two bars, the longer one of ``length``."""
    if other is None:
        return []
    parts, most = [], max(mine, other)
    for line, (value, kind) in enumerate(((mine, "ours"), (other, "theirs"))):
        parts.append(rect(x, y + 15 * line, length * value / most, 11, kind, 2))
        parts.append(text(x + length * value / most + 6, y + 10 + 15 * line, short(value), "soft"))
    return parts


def _legend(x: float, y: float) -> list[str]:
    ours = [rect(x, y, 11, 11, "ours", 2), text(x + 16, y + 10, "west-tinyml", "soft")]
    return [*ours, rect(x + 120, y, 11, 11, "theirs", 2), text(x + 136, y + 10, PEER, "soft")]


def bars(machine: str = MACHINE) -> str:
    """Instructions, flash and RAM on a core, ours above those of the peer."""
    parts = [text(0, 18, f"on a {core(machine)}", "soft")]
    parts += [text(190 + 180 * column, 18, title, "soft") for column, title in enumerate(COLUMNS)]
    y = 30.0
    for name, pairs in _pairs(machine):
        parts.append(text(0, y + 22, name))
        for column, (mine, other) in enumerate(pairs):
            parts += _pair(190 + 180 * column, y + 6, mine, other, 100)
        y += 46
    return svg(730, int(y + 28), BESIDE, [*parts, *_legend(190, y + 6)])


def bars_narrow(machine: str = MACHINE) -> str:
    """The same from top to bottom, for a phone."""
    parts, y = _legend(0, 6), 46.0
    for column, title in enumerate(COLUMNS):
        parts.append(text(0, y, f"{title}, on a {core(machine)}", "soft"))
        y += 10
        for name, pairs in _pairs(machine):
            parts += [text(0, y + 18, name), *_pair(146, y + 2, *pairs[column], 150)]
            y += 40
        y += 26
    return svg(360, int(y - 20), BESIDE, parts)


def short(value: int) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:.1f} M"
    return f"{value / 1e3:.1f} k" if value >= 10_000 else f"{value:,}"
