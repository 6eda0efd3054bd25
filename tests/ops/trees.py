# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decision trees and the other models that scikit-learn exports."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real, whole
from tinyml.ir import Array

ML = "ai.onnx.ml"
FEATURES = 4
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]


def forest(
    count: int, depth: int, word: str, targets: list[int], modes: list[str], **more: Any
) -> dict[str, Any]:
    """Attributes of complete trees with random questions; each leaf has a weight for each target.

    With ``pure``, only one of them is not zero, as in most leaves of random forests.
    """
    random = np.random.default_rng(depth)
    nodes: dict[str, list[Any]] = {
        name: []
        for name in (
            "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
            "missing_value_tracks_true",
        )
    }  # fmt: skip
    held: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    low, high = more.pop("low", -1.0), more.pop("high", 1.0)
    tracks, pure = more.pop("tracks", False), more.pop("pure", False)
    extreme = more.pop("extreme", False)
    inner = 2**depth - 1
    for tree in range(count):
        for number in range(2 * inner + 1):
            leaf = number >= inner
            row = (
                tree, number, 0 if leaf else int(random.integers(FEATURES)),
                "LEAF" if leaf else modes[number % len(modes)],
                0.0 if leaf else _limit(random, extreme),
                0 if leaf else 2 * number + 1, 0 if leaf else 2 * number + 2,
                int(tracks and not leaf and number % 2 == 0),
            )  # fmt: skip
            for name, value in zip(nodes, row, strict=True):
                nodes[name].append(value)
            for target in targets if leaf else []:
                weight = float(np.float32(random.uniform(low, high)))
                if pure:
                    weight = 1 / count if target == number % len(targets) else (-1.0) ** number * 0.0
                for name, value in zip(held, (tree, number, target, weight), strict=True):
                    held[name].append(value)
    named = {f"nodes_{name}": values for name, values in nodes.items()}
    return {**named, **{f"{word}_{name}": values for name, values in held.items()}, **more}


def _base(values: list[float]) -> Any:
    return {"base_values": values} if values else {}


EXTREMES = (-np.inf, np.inf, -0.0, 3.4028235e38, -3.4028235e38, 1e-45)


def _limit(random: np.random.Generator, extreme: bool) -> float:
    if extreme and random.random() < 0.6:
        return float(random.choice(EXTREMES))
    return float(np.float32(random.integers(-3, 4) / 2))


def extreme_samples(rows: int = 24) -> Array:
    """Numbers at the ends of float32, and some that are not numbers."""
    random, x = np.random.default_rng(6), np.tile(samples(8), (rows // 8, 1))
    chosen = random.random(x.shape) < 0.6
    x[chosen] = random.choice([*EXTREMES, np.nan], int(chosen.sum()))
    return x


def samples(rows: int = 9) -> Array:
    """Many values are exactly the limits in the trees."""
    return (np.random.default_rng(5).integers(-4, 5, (rows, FEATURES)) / 2).astype(np.float32)


def odd() -> Array:
    x = samples()
    x[::2, 1] = np.nan
    return x


def classifier(name: str, targets: list[int], labels: list[int], x: Array | None = None, **more: Any) -> Case:
    modes = more.pop("modes", ["BRANCH_LEQ"])
    attributes = forest(3, 3, "class", targets, modes, classlabels_int64s=labels, **more)
    data = samples() if x is None else x
    return onnx_case(name, "TreeEnsembleClassifier", [data], outputs=2, domain=ML, **attributes)


def regressor(name: str, targets: list[int], depth: int = 2, **more: Any) -> Case:
    attributes = forest(5, depth, "target", targets, ["BRANCH_LEQ"], n_targets=len(targets), **more)
    return onnx_case(name, "TreeEnsembleRegressor", [samples()], domain=ML, **attributes)


def linear(name: str, classes: int, **more: Any) -> Case:
    return onnx_case(
        name,
        "LinearClassifier",
        [samples()],
        outputs=2,
        domain=ML,
        coefficients=real(classes * FEATURES, seed=2).tolist(),
        intercepts=real(classes, seed=3).tolist(),
        classlabels_ints=list(range(classes)),
        **more,
    )


CASES: list[Case] = [
    *(classifier(f"modes_{mode}", [0, 1, 2], [0, 1, 2], modes=[mode]) for mode in MODES),
    classifier("mixed_modes", [0, 1, 2], [7, 3, -2], modes=MODES),
    classifier("missing", [0, 1, 2], [0, 1, 2], odd(), tracks=True),
    classifier("missing_no", [0, 1, 2], [0, 1, 2], odd(), modes=["BRANCH_GT", "BRANCH_LEQ"]),
    *(
        classifier(f"extreme_{mode}_{tracks}", [0, 1, 2], [0, 1, 2], extreme_samples(), modes=[mode],
                   extreme=True, tracks=tracks)
        for mode in MODES
        for tracks in (False, True)
    ),
    *(
        classifier(
            f"two_{transform.lower()}_{sign}_{len(base)}", [0], [0, 1], post_transform=transform, low=low,
            high=high, **_base(base),
        )
        for transform in ("NONE", "LOGISTIC")
        for sign, low, high in (("positive", 0.0, 3.0), ("negative", -3.0, -0.1), ("mixed", -3.0, 3.0))
        for base in ([], [-0.75])
    ),
    classifier("pure", [0, 1, 2], [0, 1, 2], pure=True),
    regressor("zero", [0], low=0.0, high=0.0),
    classifier("softmax", [0, 1, 2], [0, 1, 2], post_transform="SOFTMAX", base_values=[0.5, 0.1, -0.3]),
    classifier("logistic", [0, 1, 2, 3], [0, 1, 2, 3], post_transform="LOGISTIC"),
    classifier("two_probability", [0], [0, 1], low=0.0),
    classifier("two_probability_other", [1], [4, 9], low=0.0),
    # onnxruntime takes the second class whenever its score is above 0; ONNX says the largest score
    classifier("two_scores", [0, 1], [0, 1], low=0.0, oracle="reference"),
    classifier("two_margin", [0], [0, 1]),
    classifier("two_logistic", [0], [0, 1], post_transform="LOGISTIC", base_values=[0.2]),
    classifier("whole_numbers", [0, 1, 2], [0, 1, 2], whole(5, FEATURES, low=-3, high=3, dtype="int64")),
    regressor("regressor", [0]),
    regressor("regressor_base", [0, 1], base_values=[1.5, -2.0]),
    regressor("regressor_average", [0], aggregate_function="AVERAGE", base_values=[3.0]),
    regressor("stump", [0], depth=0),
    linear("linear_softmax", 3, post_transform="SOFTMAX"),
    linear("linear_logistic", 2, post_transform="LOGISTIC"),
    linear("linear_none", 3),
    onnx_case("linear_regressor", "LinearRegressor", [samples()], domain=ML, targets=2,
              coefficients=real(2 * FEATURES).tolist(), intercepts=[0.5, -0.5]),
    onnx_case("scaler", "Scaler", [samples()], domain=ML, offset=real(FEATURES).tolist(),
              scale=[0.5] * FEATURES),
    onnx_case("scaler_one", "Scaler", [samples()], domain=ML, offset=[1.0], scale=[0.25]),
    *(
        onnx_case(f"normalizer_{norm}", "Normalizer", [real(3, 5)], domain=ML, norm=norm)
        for norm in ("L1", "L2")
    ),
    onnx_case("imputer", "Imputer", [np.array([[1, np.nan, -2], [np.nan, 0, np.nan]], np.float32)], domain=ML,
              imputed_value_floats=[0.5, -1.5, 7.0], replaced_value_float=float("nan")),
    onnx_case("imputer_mark", "Imputer", [np.array([[1, -9, -2], [-9, 0, -9]], np.float32)], domain=ML,
              imputed_value_floats=[0.25], replaced_value_float=-9.0),
    onnx_case("imputer_whole", "Imputer", [np.array([[1, -9], [-9, 0]], np.int64)], domain=ML,
              imputed_value_int64s=[4, 5], replaced_value_int64=-9),
    onnx_case("one_hot_encoder", "OneHotEncoder", [np.array([[3, 5], [8, -1]], np.int64)], domain=ML,
              cats_int64s=[5, 3, -1]),
    onnx_case("one_hot_encoder_real", "OneHotEncoder", [np.array([3, 5.7, 8, -1.2], np.float32)], domain=ML,
              cats_int64s=[5, 3, -1], zeros=1),
    onnx_case("binarizer", "Binarizer", [samples()], domain=ML, threshold=0.5),
    onnx_case("columns", "ArrayFeatureExtractor", [samples(), Const(np.array([2, 0], np.int64))], domain=ML),
    onnx_case("columns_by_data", "ArrayFeatureExtractor",
              [Const(real(1, 6)), np.array([[3, 1]], np.int64)], domain=ML),
]  # fmt: skip
