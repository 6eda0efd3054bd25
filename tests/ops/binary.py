"""Binary: arithmetic with broadcasting."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case

RNG = np.random.default_rng(1)


def real(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RNG.uniform(-3, 3, shape).astype(np.float32)


CASES: list[Case] = [
    *(onnx_case(f"{op}_same", op, [real(2, 3), real(2, 3)]) for op in ("Add", "Sub", "Mul")),
    onnx_case("add_channels", "Add", [real(2, 3, 4), Const(real(3, 1))]),
    onnx_case("mul_scalar", "Mul", [Const(real()), real(2, 3)]),
]
