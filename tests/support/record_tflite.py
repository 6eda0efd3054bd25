# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Record the outputs of TensorFlow Lite's reference kernels for the cases of ``tflite_cases.py``.

    python -m tests.support.record_tflite

Requires tflite-runtime 2.14 (``pip install tflite-runtime==2.14.0 'numpy<2'``), which the tests do not.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tflite_case import TfliteCase
from tests.support.tflite_cases import all_cases
from tinyml.ir import Array

GOLDENS = Path(__file__).parents[1] / "recorded" / "tflite_2_14.npz"


def run_reference(case: TfliteCase) -> list[list[Array]]:
    """The outputs of each run."""
    runtime = import_module("tflite_runtime.interpreter")
    reference = runtime.OpResolverType.BUILTIN_REF
    interpreter = runtime.Interpreter(model_content=case.content, experimental_op_resolver_type=reference)
    interpreter.allocate_tensors()
    results = []
    for sample in case.samples:
        for port, array in zip(interpreter.get_input_details(), sample, strict=True):
            interpreter.set_tensor(port["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(p["index"]).copy() for p in interpreter.get_output_details()])
    return results


def main() -> None:
    arrays: dict[str, Any] = {}
    for case in all_cases():
        for run, outputs in enumerate(run_reference(case)):
            for index, array in enumerate(outputs):
                arrays[f"{case.name}|{run}|{index}"] = array
    GOLDENS.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDENS, **arrays)
    print(f"{len(arrays)} arrays, {GOLDENS.stat().st_size} bytes in {GOLDENS}")


if __name__ == "__main__":
    main()
