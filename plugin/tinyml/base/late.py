# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Asks a room above by name, where a lower one needs an answer that only the whole compiler can give.

The quantiser's ``--auto`` compares what whole models cost. It is a tool before the compiler, and estimates
are made of compiled models: an import would point up. The importers ask the passes whether a loop is a
recurrent layer, because they unroll such loops and no others that are long. There are no other questions.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast


def instructions(content: bytes, core: str) -> int | None:
    """Instructions of one run of an ONNX model on a core, estimated; None if they are not known."""
    return cast("int | None", import_module("tinyml.cost.price").instructions(content, core))


def layers_with_recurrent(graph: object) -> int | None:
    """How many layers are left if the passes make an RNN, GRU or LSTM of the first steps of a loop; None if
    they make none.
    """
    return cast("int | None", import_module("tinyml.passes").layers_with_recurrent(graph))
