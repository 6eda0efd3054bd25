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


def landing() -> str:
    """A model, its C, its arena."""
    parts = [text(70, 20, "model.onnx", "soft", "middle")]
    for number, (name, kind) in enumerate(LAYERS):
        y = 34 + 42 * number
        parts += [rect(20, y, 100, 28, kind)]
        parts += [text(70, y + 18, name, "on" if kind == "b" else "inside", "middle")]
        if number + 1 < len(LAYERS):
            parts.append(f'<path d="M70 {y + 28}v14" class="edge"/>')
    parts += [_arrow(136, 136), text(310, 20, "plain C, one call per layer", "soft", "middle")]
    parts.append(rect(186, 34, 248, 196, "card", 8))
    parts += [text(200, 60 + 22 * number, line, "code") for number, line in enumerate(CODE)]
    parts += [_arrow(450, 136), text(606, 20, "one arena, planned by the compiler", "soft", "middle")]
    parts.append(rect(500, 34, 212, 196, "card", 8))
    places = ((0, 1, 0, 2, "c"), (0, 2, 2, 4, "a"), (1, 3, 0, 2, "a"), (2, 4, 2, 3, "d"), (3, 5, 0, 1, "b"))
    for first, last, low, height, kind in places:
        x, y = 508 + 39.4 * first, 222 - 30 * (low + height)
        parts.append(rect(x, y, 39.4 * (last - first) - 2, 30 * height - 2, kind, 2))
    parts.append(text(606, 250, "time: layer by layer", "soft", "middle"))
    return svg(730, 262, "A model becomes C, and its tensors share one arena", parts)


def logo() -> str:
    """Blocks that share an arena."""
    blocks = ((2, 34, 18, 28, "b"), (22, 18, 18, 28, "a"), (42, 34, 20, 28, "b"), (22, 50, 18, 12, "d"))
    return svg(64, 64, "west-tinyml", [rect(x, y - 8, w, h, kind, 3) for x, y, w, h, kind in blocks])


def bars(machine: str = MACHINE) -> str:
    """Instructions, flash and RAM on a core, ours above those of the peer."""
    rows = load(ROOT / "benchmarks" / "record.json").rows
    ours = {row.sha256: row for row in rows if (row.kernels, row.machine) == (KERNELS, machine)}
    parts = [text(0, 18, f"on a {core(machine)}", "soft")]
    for column, title in enumerate(("instructions of one run", "bytes of flash", "bytes of RAM")):
        parts.append(text(190 + 180 * column, 18, title, "soft"))
    y = 30.0
    for model in peers().models.values():
        row = ours.get(model.sha256)
        found = (one for one in peers().of(model.sha256, machine) if one.peer == PEER)
        theirs = next(found, None)
        if row is None or theirs is None or None in (theirs.constants_bytes, theirs.code_bytes):
            continue
        parts.append(text(0, y + 22, model.title.replace("MLPerf Tiny ", "").partition(" (")[0]))
        flash = (theirs.constants_bytes or 0) + (theirs.code_bytes or 0)
        pairs = (
            (row.instructions, theirs.instructions),
            (row.constants_bytes + row.code_bytes, flash),
            (row.ram_bytes, theirs.ram_bytes),
        )
        for column, (mine, other) in enumerate(pairs):
            if other is None:
                continue
            x, most = 190 + 180 * column, max(mine, other)
            for line, (value, kind) in enumerate(((mine, "ours"), (other, "theirs"))):
                parts.append(rect(x, y + 6 + 15 * line, 100 * value / most, 11, kind, 2))
                parts.append(text(x + 100 * value / most + 6, y + 16 + 15 * line, short(value), "soft"))
        y += 46
    parts += [rect(190, y + 6, 11, 11, "ours", 2), text(206, y + 16, "west-tinyml", "soft")]
    parts += [rect(310, y + 6, 11, 11, "theirs", 2), text(326, y + 16, PEER, "soft")]
    return svg(730, int(y + 28), "Figures beside those of TensorFlow Lite Micro with CMSIS-NN", parts)


def short(value: int) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:.1f} M"
    return f"{value / 1e3:.1f} k" if value >= 10_000 else f"{value:,}"
