# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where between two activations, such as the new rows of a cache and its old ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def choices_quantized() -> Iterator[None]:
    """Quantise both values of a Where if neither is a constant.

    onnxruntime's quantiser does so only if the nodes before it are quantised; before a cache is none.
    Constants, such as what hides scores, may be far from all other values, and remain its decision.
    """
    from onnxruntime.quantization.operators.where import QDQWhere
    from onnxruntime.quantization.registry import QDQRegistry

    class Choice(QDQWhere):  # type: ignore[misc]  # the base class is untyped
        def quantize(self) -> None:
            values = self.node.input[1:3]
            if any(name in self.quantizer.initializers for name in values):
                super().quantize()
                return
            for name in (*values, *self.node.output):
                self.quantizer.quantize_activation_tensor(name)

    before = QDQRegistry["Where"]
    QDQRegistry["Where"] = Choice
    try:
        yield
    finally:
        QDQRegistry["Where"] = before
