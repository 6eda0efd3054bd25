"""Ask TensorFlow Lite's reference kernels for the goldens of ``tflite_cases.py``, and write them down.

    python -m tests.support.record_tflite

Needs tflite-runtime 2.14 (``pip install tflite-runtime==2.14.0 'numpy<2'``), which the tests do not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.tflite_cases import TfliteCase, all_cases
from tinyml.ir import Array

GOLDENS = Path(__file__).parents[1] / "goldens" / "tflite_2_14.npz"


def ask(case: TfliteCase) -> list[list[Array]]:
    """The outputs of each run."""
    from tflite_runtime.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=case.content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    results = []
    for sample in case.samples:
        for port, array in zip(interpreter.get_input_details(), sample, strict=True):
            interpreter.set_tensor(port["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(p["index"]).copy() for p in interpreter.get_output_details()])
    return results


def main() -> None:
    arrays = {}
    for case in all_cases():
        for run, outputs in enumerate(ask(case)):
            for index, array in enumerate(outputs):
                arrays[f"{case.name}|{run}|{index}"] = array
    GOLDENS.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDENS, **arrays)
    print(f"{len(arrays)} arrays, {GOLDENS.stat().st_size} bytes in {GOLDENS}")


if __name__ == "__main__":
    main()
