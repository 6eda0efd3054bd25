# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Names of classes and the model that they are for."""

from __future__ import annotations

from dataclasses import replace

from tinyml.base.errors import ConfigError
from tinyml.ir import Graph


def with_classes(graph: Graph, classes: tuple[str, ...]) -> Graph:
    """The graph with names for the elements of an output; unchanged if there are none."""
    if not classes:
        return graph
    sizes = [graph.tensors[name].shape[-1] for name in graph.outputs if graph.tensors[name].shape]
    if len(classes) not in sizes and sizes != [1] * len(sizes):
        raise ConfigError(
            f"{len(classes)} names of classes, but no output has {len(classes)} elements",
            "one name for each element of the output, in its order",
        )
    return replace(graph, labels=classes)
