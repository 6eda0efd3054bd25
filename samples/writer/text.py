# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The text that the model learns: the prose of Python's language reference, which every CPython brings.

``pydoc_data.topics`` is what ``help("lambda")`` prints. Its licence is that of Python, PSF-2.0.
"""

from __future__ import annotations

import re
from pydoc_data.topics import topics

import numpy as np
import numpy.typing as npt

CHARACTERS = "\n !\"'()*,-./0123456789:;=ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz"
PLAIN = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--")


def paragraphs() -> list[str]:
    """Paragraphs of prose, each one line; grammar, tables and code are left out."""
    found: dict[str, None] = {}
    for name in sorted(topics):
        for paragraph in re.split(r"\n\s*\n", topics[name].translate(PLAIN)):
            line = re.sub(r"^\* ", "", " ".join(paragraph.split()))
            prose = re.match(r"[A-Z\"*]", line) and line.endswith((".", ":"))
            if len(line) >= 60 and prose and set(line) <= set(CHARACTERS):
                found[line] = None
    return list(found)


def learnt() -> list[str]:
    return [line for number, line in enumerate(paragraphs()) if number % 10]


def held_back() -> list[str]:
    """Every tenth paragraph: the model has not seen it."""
    return paragraphs()[::10]


def numbers(lines: list[str]) -> npt.NDArray[np.int64]:
    """Characters as the model reads them; every line ends with its end."""
    table = {character: number for number, character in enumerate(CHARACTERS)}
    return np.array([table[character] for line in lines for character in line + "\n"])
