# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train a random forest on scikit-learn's wine data; write models/wine.onnx and src/values.h.

    pip install scikit-learn skl2onnx
    python train.py

Thirteen sensors of a laboratory (alcohol, acids, colour …) measure 178 wines of three cultivars. Every fourth
wine is held back: the first 20 of these are in src/values.h.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from skl2onnx import to_onnx
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

HERE = Path(__file__).resolve().parent
COUNT = 20
Array = npt.NDArray[Any]


def load() -> tuple[Array, Array, Array]:
    """Values, cultivars, and whether a wine is held back."""
    wine = load_wine()
    order = np.random.default_rng(1).permutation(len(wine.target))
    values = wine.data[order].astype(np.float32)
    return values, wine.target[order], np.arange(len(values)) % 4 == 0


def shown() -> tuple[Array, Array]:
    """Values and cultivars of the wines in src/values.h."""
    values, labels, held_back = load()
    return values[held_back][:COUNT], labels[held_back][:COUNT]


def literal(value: np.float32) -> str:
    """A float literal that reads back to the same bits."""
    return f"{np.format_float_positional(value, unique=True, trim='0')}f"


def header() -> str:
    values, labels = shown()
    rows = [
        f"\t{{{{{', '.join(map(literal, row))}}}, {label}}},"
        for row, label in zip(values, labels, strict=True)
    ]
    return "\n".join(
        [
            "/* Copyright The west-tinyml contributors */",
            "/* SPDX-License-Identifier: Apache-2.0 */",
            "",
            "/* Made by train.py from scikit-learn's wine data; do not edit. */",
            "",
            "/* clang-format off */",
            "",
            "struct wine {",
            f"\tfloat values[{values.shape[1]}];",
            "\tint cultivar;",
            "};",
            "",
            "static const struct wine wines[] = {",
            *rows,
            "};",
            "",
        ]
    )


def main() -> None:
    values, labels, held_back = load()
    forest = RandomForestClassifier(n_estimators=10, max_depth=4, random_state=0)
    forest.fit(values[~held_back], labels[~held_back])
    model = to_onnx(forest, values[:1], options={"zipmap": False}, target_opset=17)
    (HERE / "models" / "wine.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (HERE / "src" / "values.h").write_text(header(), encoding="utf-8")
    right = 100 * forest.score(values[held_back], labels[held_back])
    print(f"wine.onnx: {right:.1f} % of {held_back.sum()} held-back wines")


if __name__ == "__main__":
    main()
