# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""llms.txt of the site: what the project is and what each page says, for coding assistants."""

from __future__ import annotations

import re
from pathlib import Path

FILE = "llms.txt"
INTRODUCTION = """# west-tinyml

> A compiler that turns ONNX and TFLite models into plain C as part of `west build` (Zephyr) and `pio run`
> (PlatformIO). It plans the memory, needs no interpreter and no heap, and proves that the device computes
> what the model computes.

- Add a model to a Zephyr application: `west tinyml add model.onnx`, then `west build`.
- Make an application around a model: `tinyml new APP --model model.onnx -b BOARD`; it has an AGENTS.md.
- What a model takes: `tinyml report model.onnx --target cortex-m4`. A build that exceeds its memory prints
  the settings that would fit, with their bytes.
- Whether the device computes the right numbers: `tinyml verify model.onnx --on qemu-cortex-m4`.
- Every command has `--help`, and every error says what to try. Generated C is never edited.
"""


def text(folder: Path) -> str:
    """One line per page: its title and its first sentences."""
    lines = [INTRODUCTION, "## Pages", ""]
    for page in sorted(folder.glob("*.md")):
        if page.stem != "index":
            title, summary = first_words(page.read_text(encoding="utf-8"))
            lines.append(f"- [{title}]({page.stem}.html): {summary}")
    return "\n".join([*lines, ""])


def first_words(page: str) -> tuple[str, str]:
    """The heading, and the first paragraph as plain text in at most 200 characters."""
    heading, _, rest = page.partition("\n")
    paragraphs = (part.strip() for part in rest.split("\n\n"))
    first = next((part for part in paragraphs if re.match(r"[A-Za-z`*\[]", part)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    plain = plain.replace("**", "")
    cut = plain if len(plain) <= 200 else plain[:200].rsplit(" ", 1)[0] + " …"
    return heading.removeprefix("# ").strip(), cut
