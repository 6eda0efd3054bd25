# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One network from several tools for quantisation, in docs/quantize.md: python -m tools.trained_models

The files are in tests/recorded/trained; tests/support/record_trained.py made them.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import tinyml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quantize.md"
FOLDER = ROOT / "tests" / "recorded" / "trained"
TARGET = "cortex-m4"
MACHINES = ("qemu-cortex-m3", "qemu-cortex-m4")
HEAD = "| Tool | Weights, bytes | Arena, bytes | Instructions, Cortex-M3 | Cortex-M4 |"
RULE = "| --- | --- | --- | --- | --- |"
TOOLS = {
    "tfmot.tflite": "TensorFlow Model Optimization 0.8.1 (TensorFlow 2.21.0, tf_keras 2.21.0)",
    "torch_fx.onnx": "torch.ao, FX graph mode (PyTorch 2.13.0)",
    "torchao_pt2e.onnx": "torchao 0.18.0, PyTorch 2 export (PyTorch 2.13.0)",
    "brevitas_qcdq.onnx": "Brevitas 0.13.4, QCDQ (PyTorch 2.13.0)",
    "neural_compressor.onnx": "neural-compressor 3.10, static (PyTorch 2.13.0)",
    "olive.onnx": "Olive 0.13.0, OnnxStaticQuantization (onnxruntime 1.31.1)",
    "keras_int8.onnx": 'Keras 3.15.1, `model.quantize("int8")` (tf2onnx 1.17.0)',
}


@dataclass(frozen=True)
class Sizes:
    """What the compiler alone decides."""

    weights: int
    arena: int


def sizes(file: str) -> Sizes:
    compiled = tinyml.compile(FOLDER / file, target=TARGET)
    return Sizes(compiled.weights_bytes, compiled.arena_bytes)


def stated() -> dict[str, Sizes]:
    """The rows of the page, by file."""
    names = {text: file for file, text in TOOLS.items()}
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (.+?) \| ([\d,]+) \| ([\d,]+) \| [\d,]+ \| [\d,]+ \|$", text)
    numbers = {names[tool]: found for tool, *found in rows if tool in names}
    return {file: Sizes(*(int(n.replace(",", "")) for n in found)) for file, found in numbers.items()}


def row(file: str) -> str:
    found = sizes(file)
    counted = []
    for machine in MACHINES:
        (instructions,) = tinyml.run(FOLDER / file, on=machine).instructions or (0,)
        counted.append(instructions)
    return f"| {TOOLS[file]} | {found.weights:,} | {found.arena:,} | {counted[0]:,} | {counted[1]:,} |"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("| Tool | Weights, bytes |")
    end = text.index("\n\n", start)
    table = "\n".join([HEAD, RULE, *(row(file) for file in TOOLS)])
    PAGE.write_text(text[:start] + table + text[end:], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
