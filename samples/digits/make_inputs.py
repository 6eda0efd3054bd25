# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write ``src/inputs.h``: held-back images, their labels, and the outputs that the model must give.

    python make_inputs.py [--check]

The outputs are those that onnxruntime computes from ``model.onnx``: a device must give these bytes,
whichever kernels it runs.
``--check`` writes nothing and fails if the committed file is not what it would write.
"""

from __future__ import annotations

import sys

import numpy as np
from train import HERE, load, logits

COUNT = 40  # images: few enough to read the log, enough that every digit comes up
HEADER = HERE / "src" / "inputs.h"


def literal(value: np.float32) -> str:
    """A float literal that reads back to the same bits."""
    return f"{np.format_float_positional(value, unique=True, trim='0')}f"


def rows(items: list[str], columns: int) -> list[str]:
    """Items separated by commas, filled up to a width."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > columns:
            lines.append(line)
            line = ""
        line += f" {item}," if line else f"{item},"
    return [*lines, line]


def header() -> str:
    """The text of the header."""
    _, held_back = load()
    images, labels = held_back.images[:COUNT], held_back.labels[:COUNT]
    answers = logits(HERE / "model.onnx", held_back)[:COUNT]
    out = [
        "/* Copyright The west-tinyml contributors */",
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "",
        "/* Made by make_inputs.py from scikit-learn's digits and model.onnx; do not edit. */",
        "",
        "/* clang-format off */",
        "",
        "#ifndef DIGITS_INPUTS_H_",
        "#define DIGITS_INPUTS_H_",
        "",
        "#include <stdint.h>",
        "",
        "struct digit {",
        "\tuint8_t pixels[64]; /* 8 rows, 0 (paper) to 16 (ink) */",
        "\tuint8_t label;",
        "\tfloat logits[10]; /* what the model must answer */",
        "};",
        "",
        "static const struct digit held_back[] = {",
    ]
    for image, label, answer in zip(images, labels, answers, strict=True):
        pixels = [str(int(value)) for value in (image * 16).reshape(-1)]
        out += ["\t{", "\t\t.pixels = {"]
        out += [f"\t\t\t{', '.join(pixels[start : start + 8])}," for start in range(0, 64, 8)]
        out += ["\t\t},", f"\t\t.label = {label},", "\t\t.logits = {"]
        out += [f"\t\t\t{row}" for row in rows([literal(value) for value in answer], 76)]
        out += ["\t\t},", "\t},"]
    return "\n".join([*out, "};", "", "#endif /* DIGITS_INPUTS_H_ */", ""])


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if HEADER.read_text() == header():
            return 0
        print(f"{HEADER.name} is not what make_inputs.py writes: run it", file=sys.stderr)
        return 1
    HEADER.write_text(header())
    print(f"{HEADER.name}: {COUNT} images")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
