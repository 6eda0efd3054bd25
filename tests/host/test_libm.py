# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which generated C needs more than Zephyr's minimal C library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.libm import calls_libm
from tinyml.pipeline import Options, compile_model

SAMPLE = Path(__file__).parents[2] / "samples" / "digits"


@pytest.mark.parametrize(
    "source,needs",
    [
        ("#include <math.h>\ny = expf(x);", True),
        ("#include <math.h>\ny = lrintf(x) + fmax(a, b);", True),
        ("#include <tinyml/scalar.h>\n", True),
        ("#include <math.h>\nlimit = INFINITY; y = sqrtf(x); tinyml_conv_f32(&layer); kws_exp(x);", False),
        ("y = expf(x);", False),  # a function of the model's own
    ],
)
def test_calls_count_not_constants(source: str, needs: bool) -> None:
    assert calls_libm(source) is needs


def test_an_ordinary_float_model_does_not_need_libm() -> None:
    compiled = compile_model(SAMPLE / "model_float.onnx", Options(name="digits", target="cortex-m4"))
    assert "#include <math.h>" in compiled.files["digits.c"]
    assert not calls_libm(compiled.files["digits.c"])
