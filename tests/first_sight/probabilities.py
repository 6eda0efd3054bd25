# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's SVC(probability=True), as skl2onnx exports it: libsvm's coupling of all pairs of classes."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from tests.first_sight import Case, Right

RNG = np.random.default_rng(21)


def svc(classes: int, kernel: str, zipmap: bool) -> bytes:
    from skl2onnx import to_onnx
    from sklearn.svm import SVC

    centres = RNG.normal(0, 1.2, (classes, 4))
    y = np.arange(90) % classes
    x = (centres[y] + RNG.normal(0, 1, (90, 4))).astype(np.float32)
    with warnings.catch_warnings():  # deprecated; models that have it remain
        warnings.simplefilter("ignore", FutureWarning)
        model = SVC(kernel=kernel, probability=True, random_state=0).fit(x, y)
        return bytes(to_onnx(model, x[:1], options={id(model): {"zipmap": zipmap}}).SerializeToString())


CASES: list[Case] = [
    Right(f"svc_{classes}_{kernel}{'_zipmap' if zipmap else ''}", partial(svc, classes, kernel, zipmap))
    for classes, kernel, zipmap in (
        (2, "rbf", False),
        (3, "rbf", True),
        (4, "linear", False),
        (6, "poly", False),
    )
]
