# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The one door to onnxruntime: optional, chatty, untyped."""

from __future__ import annotations

import importlib.util
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tinyml.base.errors import ModelError, ToolError
from tinyml.ir import Array
from tinyml.reference.exact import exact

FATAL_ONLY = 4  # of its log: errors are raised as well


def require() -> Any:
    """The module, with its log turned down; or how to get it."""
    try:
        import onnxruntime
        import onnxruntime.quantization  # (a part of it that a minimal build may lack)
    except ImportError as error:
        if importlib.util.find_spec("onnxruntime") is None:
            raise ToolError(
                "quantising needs onnxruntime, which is not installed", "pip install 'west-tinyml[quantize]'"
            ) from None
        raise ToolError(
            f"onnxruntime is installed, but cannot be imported: {_first_line(error)}",
            "python -c 'import onnxruntime' shows the details",
        ) from None
    onnxruntime.set_default_logger_severity(FATAL_ONLY)
    return onnxruntime


@contextmanager
def quiet() -> Iterator[None]:
    """Its Python part prints, and logs advice and tracebacks; what matters is raised as well."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


class Session:
    """A model ready to run as it is written: no fusions, one thread, integers exact on every CPU."""

    def __init__(self, model: onnx.ModelProto | Path, also: Sequence[str] = ()) -> None:
        """``also``: tensors inside the model that ``run`` shall return too."""
        runtime = require()
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = FATAL_ONLY
        try:
            copy = exact(onnx.load(model) if isinstance(model, Path) else model)
        except onnx.shape_inference.InferenceError as error:
            raise ModelError(f"ONNX's shape inference refuses this model: {_first_line(error)}") from None
        outputs = [value.name for value in copy.graph.output]
        self.names = [*dict.fromkeys([*outputs, *also])]
        copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in self.names if n not in outputs)
        try:
            self.session = runtime.InferenceSession(
                copy.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise ModelError(f"onnxruntime does not run this model: {_first_line(error)}") from None

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs, and the requested tensors, by name."""
        try:
            # a row of a list of numbers is a number, not an array
            results = self.session.run(self.names, {name: np.asarray(x) for name, x in inputs.items()})
        except Exception as error:
            raise ModelError(f"onnxruntime failed while running the model: {_first_line(error)}") from None
        return dict(zip(self.names, results, strict=True))


def answers(model: onnx.ModelProto | Path, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of one run, in order."""
    return [*Session(model).run(inputs).values()]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
