# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which operators have readers and kernels, and which of them a model uses."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tinyml import ops
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers import onnx_sequences, read_model
from tinyml.ir.constraints import message
from tinyml.ops import catalog  # noqa: F401  (registers readers and kernels)
from tinyml.ops.framework.kernel import Kernel, kernel_table
from tinyml.ops.framework.reading import ONNX_READERS, TFLITE_CUSTOM_READERS, TFLITE_READERS

SPECIAL_ONNX = ("If", "Loop", "Scan", *onnx_sequences.READERS)
"""Read by the importer itself: they have no operator."""
SPECIAL_TFLITE = ("ASSIGN_VARIABLE", "CALL_ONCE", "IF", "READ_VARIABLE", "VAR_HANDLE", "WHILE")


@dataclass(frozen=True)
class KernelFacts:
    """One way to compute an operator."""

    name: str
    library: str
    conditions: tuple[str, ...]  # what a layer must fulfil


@dataclass(frozen=True)
class Family:
    """The readers and kernels of one family in ``ops/``."""

    name: str
    title: str
    onnx: tuple[str, ...]
    tflite: tuple[str, ...]
    kernels: tuple[KernelFacts, ...]


@dataclass(frozen=True)
class Use:
    """An operator in a model."""

    op: str
    count: int
    known: bool


def families() -> list[Family]:
    """All of ``ops/``, by name."""
    onnx: dict[str, list[str]] = {}
    for (domain, op), reader in ONNX_READERS.items():
        onnx.setdefault(_file(reader), []).append(_qualified(domain, op))
    tflite: dict[str, list[str]] = {}
    for op, tflite_reader in (*TFLITE_READERS.items(), *TFLITE_CUSTOM_READERS.items()):
        tflite.setdefault(_file(tflite_reader), []).append(op)
    kernels: dict[str, list[Kernel[Any]]] = {}
    for kind, found in kernel_table().items():
        kernels.setdefault(_file(kind), []).extend(found)
    return [
        Family(
            name.removeprefix(f"{ops.__name__}.").replace(".", "/"),
            (sys.modules[name].__doc__ or "").strip().splitlines()[0],
            tuple(sorted(onnx.get(name, ()))),
            tuple(sorted(tflite.get(name, ()))),
            tuple(_facts(kernel) for kernel in kernels.get(name, ())),
        )
        for name in sorted({*onnx, *tflite, *kernels})
        if name.startswith(f"{ops.__name__}.")
    ]


def used(path: Path) -> list[Use]:
    """The operators of a model file, the most frequent first."""
    file = read_model(path)
    if file.is_tflite:
        from tinyml.importers import tflite_file

        operators = [op for graph in tflite_file.parse(path, file.content) for op in graph.operators]
        counts = Counter(op.op_type for op in operators)
        builtin = {*TFLITE_READERS, *SPECIAL_TFLITE}
        known = {
            op.op_type
            for op in operators
            if op.op_type in (TFLITE_CUSTOM_READERS if op.is_custom else builtin)
        }
    else:
        from tinyml.importers import onnx_model

        model = onnx_model.parse(file)
        counts = Counter(_onnx_names(model.graph.node))
        known = {_qualified(domain, op) for domain, op in ONNX_READERS} | {*SPECIAL_ONNX}
        known |= {_qualified(function.domain, function.name) for function in model.functions}
        known |= {name for name in counts if _is_composed(name)}
    return [Use(op, count, op in known) for op, count in sorted(counts.items(), key=lambda i: (-i[1], i[0]))]


def _onnx_names(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        yield _qualified("" if node.domain == "ai.onnx" else node.domain, node.op_type)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _onnx_names(graph.node)


def _is_composed(name: str) -> bool:
    """Whether ONNX defines the operator as a function of others, which the importer inlines."""
    from onnx import defs

    domain, _, op = name.rpartition("::")
    try:
        schema: Any = defs.get_schema(op, domain)
    except defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def _facts(kernel: Kernel[Any]) -> KernelFacts:
    return KernelFacts(kernel.name, kernel.library.value, tuple(message(c) for c in kernel.constraints))


def _file(thing: Any) -> str:
    """The module that defines a reader or an operator."""
    return str(thing.__module__)


def _qualified(domain: str, op: str) -> str:
    return f"{domain}::{op}" if domain else op
