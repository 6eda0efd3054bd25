# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One C function per layer: its parameters, its body, its tables, and the call that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text
from tinyml.cores.targets import Target
from tinyml.emit.names import layer_names
from tinyml.ir import Graph, Tensor
from tinyml.ir.branches import guards, ordered
from tinyml.memory.plan import Location, Plan, Region
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Record, Sheet, Table, Tables, input_parameter, output_parameter
from tinyml.ops.framework.tally import Tally


@dataclass(frozen=True)
class LayerCode:
    """What the template needs to print one layer."""

    comment: list[c.Code]
    signature: list[c.Code]
    call: list[c.Code]
    body: list[c.Code]
    tables: list[Table]  # those that no layer before has
    records: list[Record]
    headers: list[str]
    libm: set[str]
    tally: Tally  # what the function does
    may_fail: bool = False  # its function returns a status

    @property
    def function(self) -> str:
        """The function alone, as the generated C has it."""
        return "\n".join([*self.comment, *self.signature, "{", *self.body, "}"])


class Addresses:
    """C expressions for where tensors live."""

    def __init__(self, model: str, graph: Graph, plan: Plan, callers: Mapping[str, str]) -> None:
        self.model, self.graph, self.plan = model, graph, plan
        self.callers = callers  # tensors in the caller's buffers, by the name of the parameter

    def in_memory(self, tensor: Tensor) -> bool:
        """Whether the model itself has memory for a tensor; else the caller has."""
        return self.plan.places[tensor.name].region not in (Region.INPUT, Region.OUTPUT)

    def expression(self, tensor: Tensor) -> str:
        place = self.plan.places[tensor.name]
        if place.region is Region.ARENA:
            return f"AT({tensor.dtype.c}, {place.offset})"
        array = self._array(place)
        return f"&{array}[{place.offset // tensor.dtype.bytes}]" if place.offset else array

    def _array(self, place: Location) -> str:
        if place.region is Region.STATE:
            return f"{self.model}_state{place.index}"
        names = self.graph.inputs if place.region is Region.INPUT else self.graph.outputs
        return self.callers[names[place.index]]

    def describe(self, tensor: Tensor) -> str:
        """Where the tensor is, for comments."""
        if tensor.is_constant:
            return "flash"
        place = self.plan.places[tensor.name]
        if place.region is not Region.ARENA:
            return f"{place.region.value} {place.index}"
        return f"{place.offset}..{place.offset + tensor.bytes}"


def layer_codes(
    model: str,
    plan: Plan,
    selected: Sequence[Selected],
    target: Target,
    addresses: Addresses,
    tables: Tables,
) -> list[LayerCode]:
    """Code for every layer that does any work; layers that only rename memory are left out.

    The constants that they need are added to ``tables``.
    """
    names = layer_names(model, [s.layer for s in selected])
    conditions = _conditions(selected, addresses)
    return [
        _code(step, name, chosen, addresses, target, tables, conditions[step])
        for step, (chosen, name) in enumerate(zip(selected, names, strict=True))
        if step not in plan.free
    ]


def _conditions(selected: Sequence[Selected], addresses: Addresses) -> list[str]:
    """For each layer, the C expression that says whether its results are used; empty for most.

    A condition that is computed after the layer cannot spare it.
    """
    position = {t.name: step for step, chosen in enumerate(selected) for t in chosen.layer.outputs}
    found = []
    for step, guard in enumerate(guards(addresses.graph)):
        known = [pair for pair in ordered(guard, position) if position.get(pair[0], -1) < step]
        terms = []
        for name, truth in known:
            place = addresses.expression(addresses.graph.tensors[name])
            terms.append(f"{'' if truth else '!'}*{place}")
        found.append(" && ".join(terms))
    return found


def _code(
    step: int,
    name: str,
    chosen: Selected,
    addresses: Addresses,
    target: Target,
    tables: Tables,
    condition: str = "",
) -> LayerCode:
    layer = chosen.layer
    shared = addresses.plan.shared.get(step, frozenset())
    sheet = Sheet(
        layer,
        target,
        name,
        frozenset(i for i, t in enumerate(layer.inputs) if t is not None and t.name in shared),
        step in addresses.plan.backwards,
        tables,
    )
    chosen.kernel.emit(layer, sheet)
    parameters: list[tuple[str, str]] = []  # declaration, argument
    for index, tensor in enumerate(layer.inputs):
        if tensor is not None and not tensor.is_constant:
            parameter = input_parameter(layer, index)
            if parameter in sheet.used_parameters:
                parameters.append((f"const {tensor.dtype.c} *{parameter}", addresses.expression(tensor)))
    for index, tensor in enumerate(layer.outputs):
        parameter = output_parameter(layer, index)
        if parameter in sheet.used_parameters:
            parameters.append((f"{tensor.dtype.c} *{parameter}", addresses.expression(tensor)))
    if "scratch" in sheet.used_parameters:
        parameters.append(("void *scratch", f"AT(void, {addresses.plan.scratch[step]})"))
    parameters += sheet.more_parameters
    declarations = ", ".join(d.replace(" ", c.JOINED) for d, _ in parameters) or "void"
    arguments = ", ".join(a for _, a in parameters)
    sheet.tally.body = "\n".join(sheet.lines)
    sheet.tally.in_place = len({place for _, place in parameters}) < len(parameters)
    return LayerCode(
        comment=c.code(_comment(step, chosen, addresses)),
        signature=c.code(c.wrap(f"static {'int' if sheet.may_fail else 'void'} {name}({declarations})", "")),
        call=c.code(_call(step, f"{name}({arguments})", sheet.may_fail, condition)),
        body=c.code(sheet.lines),
        tables=sheet.tables,
        records=sheet.records,
        headers=sheet.headers,
        libm=sheet.libm,
        tally=sheet.tally,
        may_fail=sheet.may_fail,
    )


def _call(step: int, call: str, may_fail: bool, condition: str = "") -> list[str]:
    if condition:
        inner = [f"{c.TAB}{line}" for line in _call(step, call, may_fail)]
        return [*c.wrap(f"if ({condition}) {{", c.TAB), *inner, f"{c.TAB}}}"]
    if not may_fail:
        return c.wrap(f"TINYML_LAYER({step}, {call});", c.TAB)
    lines = c.wrap(f"TINYML_LAYER({step}, status = {call});", c.TAB)
    return [*lines, f"{c.TAB}if (status != 0) {{", f"{2 * c.TAB}return status;", f"{c.TAB}}}"]


def _comment(step: int, chosen: Selected, addresses: Addresses) -> list[str]:
    """Index, operator, work and kernel; the original name; shapes and addresses."""
    layer = chosen.layer
    operands = [t for t in layer.inputs if t is not None and not t.is_constant]
    macs = layer.op.macs(layer)
    work = f", {macs:,} MACs" if macs else ""
    shapes = " + ".join(shape_text(t.shape) for t in operands) or "nothing"
    places = ", ".join(addresses.describe(t) for t in operands) or "nothing"
    results = ", ".join(addresses.describe(t) for t in layer.outputs)
    scratch = ""
    if chosen.scratch_bytes:
        start = addresses.plan.scratch[step]
        scratch = f", scratch {start}..{start + chosen.scratch_bytes}"
    indent = " *    "
    return [
        f"/* {step}: {layer.op.label()}{work}, by {chosen.kernel.name}",
        f"{indent}{c.string(c.printable(layer.name))}",
        *c.wrap(f"{shapes} -> {' + '.join(shape_text(t.shape) for t in layer.outputs)}", indent),
        *c.wrap(f"arena {places} -> {results}{scratch}", indent),
        " */",
    ]
