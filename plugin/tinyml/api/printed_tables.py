# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""HTML for notebooks: small tables, and whole pages in a frame of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

FRAME_PIXELS = 900  # the rest scrolls, and the frame can be made larger


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """Rows of cells; with ``head``, a line of titles above them."""
    titles = f"<thead><tr>{_cells(head, 'th')}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{titles}<tbody>{body}</tbody></table>"


def frame(page: str) -> str:
    """A page with its own style, which must not change that of the notebook."""
    return (
        f'<iframe srcdoc="{escape(page, quote=True)}" sandbox="allow-scripts" '
        f'style="width:100%;height:{FRAME_PIXELS}px;max-height:85vh;resize:vertical;overflow:auto;border:0">'
        "</iframe>"
    )


def _cells(cells: Sequence[object], tag: str) -> str:
    return "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
