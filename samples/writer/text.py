# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The text that the model learns: the prose of Python's language reference, which every CPython brings.

``pydoc_data.topics`` is what ``help("lambda")`` prints. Its licence is that of Python, PSF-2.0.
"""

from __future__ import annotations

import re
from pydoc_data.topics import topics

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
