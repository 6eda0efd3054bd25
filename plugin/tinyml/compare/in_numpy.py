# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A compiled graph in numpy instead of C: how a model is compared whose NPU nothing emulates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyml.harness import Runner
from tinyml.harness.run import Result
from tinyml.ir import Array, Graph
from tinyml.ir.interpreter import interpret


class InNumpy(Runner):
    """Every operator by its definition, those of the NPU's parts too."""

    name = "numpy"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        runs = interpret(self.graph, samples)
        return Result([{name: values[name] for name in self.graph.outputs} for values in runs])
