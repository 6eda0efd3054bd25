# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The three files of a compiled model, from the results of all stages before."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinyml import __version__
from tinyml.adapt.plan import AdaptPlan
from tinyml.base import c
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import TABLES
from tinyml.base.templates import render
from tinyml.cores.targets import Target
from tinyml.emit.adapt import AdaptCode, adapt_code
from tinyml.emit.checksum import crc_of
from tinyml.emit.fed_rows import rows_code
from tinyml.emit.feed import FeedCode
from tinyml.emit.interface import Port, parameters, ports
from tinyml.emit.layers import Addresses, LayerCode, layer_codes
from tinyml.emit.watch import WatchCode, watch_code
from tinyml.ir import Array, DType, Graph
from tinyml.memory.loops.placed import with_inner
from tinyml.memory.plan import Plan
from tinyml.memory.select import Selected
from tinyml.ops.framework import table_words
from tinyml.ops.framework.kernel import Table, Tables
from tinyml.ops.framework.tally import Tally
from tinyml.watch.plan import WatchPlan

RUNTIME_HEADER = Path(__file__).parents[1] / "runtime" / "include" / "tinyml" / "tinyml.h"


@dataclass(frozen=True)
class Provenance:
    """Where a model came from; printed at the top of every generated file."""

    file_name: str
    sha256: str
    options: str


@dataclass(frozen=True)
class Emitted:
    """The generated files, their text by name, and how much flash the constant tables of each layer take.

    A table that layers share counts for the first of them.
    """

    files: dict[str, str]
    layer_bytes: tuple[int, ...]
    libm: list[str]  # functions of <math.h> that only a full C library has
    set: str  # identifies the C, which names the header and the tables that belong to it
    layer_functions: tuple[str, ...] = ()  # the C of each layer; empty where a layer does no work
    tallies: Mapping[int, Tally] = field(default_factory=dict)  # what each layer's C does, by step
    watch: WatchCode | None = None  # the counters, if it has some
    adapt: AdaptCode | None = None  # what it learns, if it does


@cache
def runtime_interface() -> int:
    """The interface number of the runtime, as its header defines it."""
    match = re.search(r"^#define TINYML_RUNTIME_INTERFACE (\d+)$", RUNTIME_HEADER.read_text("utf-8"), re.M)
    assert match is not None, f"{RUNTIME_HEADER} does not define TINYML_RUNTIME_INTERFACE"
    return int(match[1])


def emit(
    name: str,
    graph: Graph,
    plan: Plan,
    selected: Sequence[Selected],
    target: Target,
    origin: Provenance,
    feed: FeedCode | None = None,
    sources: Sequence[Path] = (),
    counters: WatchPlan | None = None,
    learning: AdaptPlan | None = None,
) -> Emitted:
    """A compiled model as text; ``feed`` is its front end, ``sources`` C that kernels from outside call."""
    addresses = Addresses(name, graph, plan, parameters(graph))
    tables = Tables()
    codes = layer_codes(name, plan, selected, target, addresses, tables)
    states = _states(name, graph, addresses)
    inputs = ports(name, graph, graph.inputs, "input", addresses)
    outputs = ports(name, graph, graph.outputs, "output", addresses)
    layer_bytes = _layer_bytes(plan, len(selected), codes)
    adapt = adapt_code(name, learning) if learning else None
    all_tables = (*tables, *(feed.tables if feed else ()), *(adapt.tables if adapt else ()))
    checked = {table.name: table.values for table in all_tables}
    checked |= {f"{s['name']}_initial": s["initial"] for s in states if not s["uniform"]}
    rows = rows_code(graph, selected, plan, target)
    watch = watch_code(name, counters, inputs, outputs, plan.io_outside) if counters else None
    functions = [function for code in codes for function in code.with_inside()]
    libm = sorted({name for function in functions for name in function.libm})
    constants = (*(table.values for table in all_tables), *(state["initial"] for state in states))
    more = [
        *(["<string.h>"] if states or feed or rows else []),
        *(feed.headers if feed else []),
        *(["<math.h>"] if _not_finite(constants) else []),
    ]
    context: dict[str, Any] = {
        "name": name,
        "NAME": name.upper(),
        "version": __version__,
        "runtime_interface": runtime_interface(),
        "origin": _in_a_comment(origin),
        "target": target,
        "arena_bytes": plan.arena_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "weights_bytes": sum(layer_bytes)
        + (feed.flash_bytes if feed else 0)
        + (watch.flash_bytes if watch else 0)
        + (adapt.flash_bytes if adapt else 0),
        "macs": sum(s.layer.op.macs(s.layer) for s in selected),
        "headers": _headers(functions, more),
        "libm": libm,
        "inputs": inputs,
        "outputs": outputs,
        "io_outside": plan.io_outside,
        "run_parameters": _run_parameters(inputs, outputs) if plan.io_outside else "void",
        "layers": codes,
        "functions": functions,
        "without_code": c.code(_without_code(plan, selected)),
        "initializer": lambda members: c.code(c.initializer(members)),
        "tables": [_table_text(name, table) for table in all_tables],
        "checked": c.code(line for table in checked for line in _crc_of_table(table)),
        "checked_crc": f"0x{crc_of(checked.values()):08x}u",
        "feed": feed,
        "rows": rows,
        "watch": watch,
        "adapt": adapt,
        "own_code": _own_code(selected, sources),
        "labels": c.code(c.string(label) for label in graph.labels),
        "states": states,
        "states_need_reset": any(not state["zero"] for state in states),
        "sha256_bytes": [f"0x{origin.sha256[i : i + 2]}" for i in range(0, 16, 2)],
    }
    # The C names the header and the tables it belongs to by their content: a model that changes without
    # changing its interface leaves the header as it was, and the application is not compiled again.
    context["header_set"] = _number(render("emit", "model.h.j2", {**context, "header_set": ""}))
    context["weights_set"] = _number(
        *(line for t in context["tables"] for line in (*t["declaration"], *t["rows"]))
    )
    files = {f"{name}.c": "model.c.j2", f"{name}.h": "model.h.j2", f"{name}{TABLES}.h": "weights.h.j2"}
    texts = {file: render("emit", template, context) for file, template in files.items()}
    working = iter(codes)
    texts_of_layers = tuple(
        "" if step in plan.free else next(working).function for step in range(len(selected))
    )
    steps = (step for step in range(len(selected)) if step not in plan.free)
    tallies = {step: code.tally for step, code in zip(steps, codes, strict=True)}
    return Emitted(
        texts, layer_bytes, libm, _number(texts[f"{name}.c"]), texts_of_layers, tallies, watch, adapt
    )


def _own_code(selected: Sequence[Selected], sources: Sequence[Path]) -> list[dict[str, object]]:
    """The C files of operators from outside, each once: their functions become part of the model's source.

    ``sources`` are those that the user lists; kernels may call what is in them.
    """
    named = [file.resolve() for file in sources]
    files = dict.fromkeys(
        [*named, *(f.resolve() for s in with_inner(selected) for f in s.kernel.code_files())]
    )
    found: list[dict[str, object]] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"cannot read {file}, the C of an operator: {error}",
                "correct `sources`, or c_files of its kernel",
            ) from None
        found.append({"name": c.printable(file.name), "lines": c.code(text.splitlines())})
    return found


def _not_finite(arrays: Iterable[Array]) -> bool:
    """Whether a constant is infinite or no number: C has names for these in <math.h>."""
    return any(values.dtype.kind == "f" and not np.isfinite(values).all() for values in arrays)


def _number(*lines: str) -> str:
    """A number that changes whenever a text does."""
    text = "\n".join(lines)
    return f"0x{hashlib.sha256(text.encode()).hexdigest()[:15]}"


def _in_a_comment(origin: Provenance) -> Provenance:
    """File names, and names of tensors among the options, may contain anything."""
    return replace(
        origin, file_name=c.printable(origin.file_name, 1000), options=c.printable(origin.options, 4000)
    )


def _without_code(plan: Plan, selected: Sequence[Selected]) -> list[str]:
    """Why the numbers of some layers are missing in the C."""
    missing = [f"{step} ({selected[step].layer.op.label()})" for step in sorted(plan.free)]
    if not missing:
        return []
    text = f"Layers whose output shares the memory of an input have no code: {', '.join(missing)}."
    return textwrap.wrap(text, c.COLUMNS, initial_indent=" * ", subsequent_indent=" * ")


def _layer_bytes(plan: Plan, layers: int, codes: Sequence[LayerCode]) -> tuple[int, ...]:
    found = [0] * layers
    working = [step for step in range(layers) if step not in plan.free]
    for step, code in zip(working, codes, strict=True):
        tables = [table for function in code.with_inside() for table in function.tables]
        found[step] = sum(table.values.nbytes for table in tables)
    return tuple(found)


def _run_parameters(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """The caller's buffers as parameters of the run function."""
    declared = [f"const {port.c_type} *{port.parameter}" for port in inputs]
    return ", ".join([*declared, *(f"{port.c_type} *{port.parameter}" for port in outputs)])


def _headers(codes: Sequence[LayerCode], more: Sequence[str]) -> list[str]:
    """Includes in the usual order: C library first, then ours, then the rest."""
    found = {header for code in codes for header in code.headers} | {*more}
    return sorted(found, key=lambda h: (h.startswith("<tinyml/"), "/" in h, h))


def _table_text(model: str, table: Table) -> dict[str, object]:
    values: Array = table.values
    where = f"TINYML_WEIGHTS_SECTION({model})"
    if table.alignment > 1:
        where += f" __attribute__((aligned({table.alignment})))"
    array = f"{table.name}[{max(values.size, 1)}]"
    return {
        "declaration": c.code(c.wrap(f"static const {DType.of(values).c} {array} {where} = {{", "")),
        # one text for all rows, because a model may have a million of them
        "rows": c.code(["\n".join(c.table_rows(values) if values.size else [f"{c.TAB}0"])]),
        "comment": c.code(_table_comment(table)),
    }


def _table_comment(table: Table) -> list[str]:
    """The shape of a table, and what its numbers mean."""
    shape = "x".join(str(extent) for extent in table.values.shape) or "1"
    words = table.holds or table_words.holds(table.name)
    text = f"/* {shape}: {c.printable(words, 400)} */" if words else f"/* {shape} */"
    return textwrap.wrap(text, c.COLUMNS, subsequent_indent=" * ")


def _crc_of_table(name: str) -> list[str]:
    return c.wrap(f"crc = tinyml_crc32(crc, {name}, sizeof({name}));", 2 * c.TAB)


def _states(name: str, graph: Graph, addresses: Addresses) -> list[dict[str, Any]]:
    states: list[dict[str, Any]] = []
    for i, state in enumerate(graph.states):
        tensor = graph.tensors[state.tensor]
        initial = state.initial
        if initial is None:
            fill = 0 if tensor.quant is None else tensor.quant.zero_point
            initial = np.full(tensor.shape, fill, tensor.dtype.numpy)
        update = graph.tensors[state.update]
        in_place = addresses.plan.places[update.name] == addresses.plan.places[tensor.name]
        states.append(
            {
                "name": f"{name}_state{i}",
                "c_type": tensor.dtype.c,
                "length": tensor.elements,
                "bytes": tensor.bytes,
                "comment": c.printable(tensor.name),
                "zero": not any(initial.tobytes()),  # of which -0.0 is none
                "uniform": initial.tobytes() == initial.reshape(-1)[:1].tobytes() * initial.size,
                "value": c.number(initial.reshape(-1)[0], initial.dtype),
                "initial": initial,
                "rows": c.code(c.table_rows(initial)),
                "source": "" if in_place else addresses.expression(update),
            }
        )
    return states
