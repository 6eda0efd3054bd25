# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pages of the samples for the documentation site, made by ``tinyml web``."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from tinyml.base.errors import ToolError
from tinyml.harness.tools import web_compiler
from tinyml.verbs.cli import main

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
FOLDER = "try"
EXAMPLES = 20


def pages(folder: Path) -> str:
    """Write the pages into ``folder``; the section that links to them, or nothing without the compiler."""
    try:
        web_compiler()
    except ToolError as error:
        print(f"the site gets no pages to try: {error}")
        return ""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "digits.npz"
        pixels = load_digits().images[-EXAMPLES:, None, None]
        np.savez(data, image=(pixels / 16).astype(np.float32))
        _page(folder, "digits", data, "Draw a digit")
    words = ["--classes", "other,hey zephyr"]
    _page(
        folder,
        "wake_word",
        SAMPLES / "wake_word" / "replay.wav",
        "Say \N{LEFT DOUBLE QUOTATION MARK}hey zephyr\N{RIGHT DOUBLE QUOTATION MARK}",
        words,
    )
    return f"""
## Try it

Two samples of this repository, as `tinyml web` makes them:
<a href="{FOLDER}/digits.html">draw a digit</a>, and <a href="{FOLDER}/wake_word.html">say the wake word</a>.
"""


def _page(folder: Path, name: str, data: Path, title: str, more: Sequence[str] = ()) -> None:
    words = ["web", name, *more, "--app", str(SAMPLES / name), "--input", str(data), "--title", title]
    if main([*words, "-o", str(folder / f"{name}.html")]) != 0:
        raise SystemExit(f"the page of {name} was not made")
