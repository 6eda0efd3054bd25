# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One C function per layer: its parameters, its body, its tables, and the call that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text
from tinyml.cores.targets import Target
from tinyml.emit.names import layer_names
from tinyml.ir import Graph, Tensor
from tinyml.ir.branches import conditions_of
from tinyml.memory.loops.placed import PlacedLoop
from tinyml.memory.plan import Location, Plan, Region
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Record, Sheet, Table, Tables, input_parameter, output_parameter
from tinyml.ops.framework.rectified import rectified
from tinyml.ops.framework.sheet import LayerCall
from tinyml.ops.framework.tally import Tally


@dataclass(frozen=True)
class LayerCode:
    """What the template needs to print one layer."""

    comment: list[c.Code]
    signature: list[c.Code]
    call: list[c.Code]
    invocation: LayerCall  # the same for a function that calls layers
    body: list[c.Code]
    tables: list[Table]  # those that no layer before has
    records: list[Record]
    headers: list[str]
    libm: set[str]
    tally: Tally  # what the function does
    may_fail: bool = False  # its function returns a status
    inside: tuple[LayerCode, ...] = ()  # functions that it calls

    @property
    def function(self) -> str:
        """The function, and before it those that it calls, as the generated C has them."""
        own = "\n".join([*self.comment, *self.signature, "{", *self.body, "}"])
        return "\n\n".join([*(code.function for code in self.inside), own])

    def with_inside(self) -> Iterator[LayerCode]:
        """All functions, in the order in which they are defined."""
        for code in self.inside:
            yield from code.with_inside()
        yield self


class Addresses:
    """C expressions for where tensors live."""

    arena = "arena"  # what comments call the memory that offsets are in

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

    def scratch(self, offset: int) -> str:
        """Scratch memory of a layer."""
        return f"AT(void, {offset})"

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


class BodyAddresses(Addresses):
    """The same for the body of a loop, whose function knows where its tensors are."""

    arena = "scratch"

    def __init__(
        self, name: str, placed: PlacedLoop, where: Callable[[Tensor | None, Location], str]
    ) -> None:
        super().__init__(name, placed.body, placed.plan, {})
        self.where = where

    def expression(self, tensor: Tensor) -> str:
        return self.where(tensor, self.plan.places[tensor.name])

    def scratch(self, offset: int) -> str:
        return self.where(None, Location(Region.ARENA, 0, offset))


@dataclass
class LayerSheet(Sheet):
    """The sheet of a layer of a model, in which there can be loops of layers."""

    position: str = ""
    inside: list[LayerCode] = field(default_factory=list)

    def calls(self, part: PlacedLoop, where: Callable[[Tensor | None, Location], str]) -> list[LayerCall]:
        addresses = BodyAddresses(self.prefix, part, where)
        codes = layer_codes(
            self.prefix,
            part.plan,
            part.selected,
            self.target,
            addresses,
            self.model_tables,
            f"{self.position}.",
        )
        self.inside += codes
        self.tally.inside += [code.tally for code in codes]
        self.may_fail = any(code.may_fail for code in codes)
        return [code.invocation for code in codes]


def layer_codes(
    model: str,
    plan: Plan,
    selected: Sequence[Selected],
    target: Target,
    addresses: Addresses,
    tables: Tables,
    position: str = "",
) -> list[LayerCode]:
    """Code for every layer that does any work; layers that only rename memory are left out.

    The constants that they need are added to ``tables``. ``position``: what comes before their numbers.
    """
    names = layer_names(model, [s.layer for s in selected])
    conditions = _conditions(addresses)
    codes = {
        step: _code(step, name, chosen, addresses, target, tables, conditions[step], f"{position}{step}")
        for step, (chosen, name) in enumerate(zip(selected, names, strict=True))
        if step not in plan.free
    }
    zeros = rectified(addresses.graph)
    for step, code in codes.items():
        first = next(iter(selected[step].layer.inputs), None)
        code.tally.rectified = first is not None and first.name in zeros
    return list(codes.values())


def _conditions(addresses: Addresses) -> list[str]:
    """For each layer, the C expression that says whether its results are used; empty for most."""
    found = []
    for conditions in conditions_of(addresses.graph):
        terms = []
        for name, truth in conditions:
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
    condition: str,
    number: str,
) -> LayerCode:
    layer = chosen.layer
    shared = addresses.plan.shared.get(step, frozenset())
    sheet = LayerSheet(
        layer,
        target,
        name,
        frozenset(i for i, t in enumerate(layer.inputs) if t is not None and t.name in shared),
        step in addresses.plan.backwards,
        tables,
        position=number,
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
        parameters.append(("void *scratch", addresses.scratch(addresses.plan.scratch[step])))
    parameters += sheet.more_parameters
    declarations = ", ".join(d.replace(" ", c.JOINED) for d, _ in parameters) or "void"
    arguments = ", ".join(a for _, a in parameters)
    sheet.tally.body = "\n".join(sheet.lines)
    sheet.tally.in_place = len({place for _, place in parameters}) < len(parameters)
    sheet.tally.distance = addresses.plan.distance(layer)
    sheet.tally.backwards = sheet.backwards
    return LayerCode(
        comment=c.code(_comment(step, number, chosen, addresses)),
        signature=c.code(c.wrap(f"static {'int' if sheet.may_fail else 'void'} {name}({declarations})", "")),
        call=c.code(_call(step, f"{name}({arguments})", sheet.may_fail, condition)),
        invocation=LayerCall(f"{name}({arguments})", condition, sheet.may_fail),
        body=c.code(sheet.lines),
        tables=sheet.tables,
        records=sheet.records,
        headers=sheet.headers,
        libm=sheet.libm,
        tally=sheet.tally,
        may_fail=sheet.may_fail,
        inside=tuple(sheet.inside),
    )


def _call(step: int, call: str, may_fail: bool, condition: str = "") -> list[str]:
    if condition:
        inner = [f"{c.TAB}{line}" for line in _call(step, call, may_fail)]
        return [*c.wrap(f"if ({condition}) {{", c.TAB), *inner, f"{c.TAB}}}"]
    if not may_fail:
        return c.wrap(f"TINYML_LAYER({step}, {call});", c.TAB)
    lines = c.wrap(f"TINYML_LAYER({step}, status = {call});", c.TAB)
    return [*lines, f"{c.TAB}if (status != 0) {{", f"{2 * c.TAB}return status;", f"{c.TAB}}}"]


def _comment(step: int, number: str, chosen: Selected, addresses: Addresses) -> list[str]:
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
        f"/* {number}: {layer.op.label()}{work}, by {chosen.kernel.name}",
        f"{indent}{c.string(c.printable(layer.name))}",
        *c.wrap(f"{shapes} -> {' + '.join(shape_text(t.shape) for t in layer.outputs)}", indent),
        *c.wrap(f"{addresses.arena} {places} -> {results}{scratch}", indent),
        " */",
    ]
