"""One C function per layer: its parameters, its body, its tables, and the call that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyml import c
from tinyml.emit.names import layer_names, shape_text
from tinyml.ir import Graph, Layer, Tensor
from tinyml.kernel import Record, Sheet, Table, input_parameter, output_parameter
from tinyml.plan import Plan
from tinyml.select import Selected
from tinyml.targets import Target


@dataclass(frozen=True)
class LayerCode:
    """What the template needs to print one layer."""

    comment: list[str]
    signature: list[str]
    call: list[str]
    body: list[str]
    tables: list[Table]
    records: list[Record]
    headers: list[str]


class Addresses:
    """C expressions for where tensors live."""

    def __init__(self, model: str, graph: Graph, plan: Plan) -> None:
        self.model, self.graph, self.plan = model, graph, plan
        self.states = {state.tensor: i for i, state in enumerate(graph.states)}

    def expression(self, tensor: Tensor) -> str:
        if tensor.name in self.states:
            return f"{self.model}_state{self.states[tensor.name]}"
        return f"AT({tensor.dtype.c}, {self.plan.offsets[tensor.name]})"

    def same(self, a: Tensor, b: Tensor) -> bool:
        """Whether two tensors start at the same byte."""
        return not a.is_constant and not b.is_constant and self._place(a) == self._place(b)

    def _place(self, tensor: Tensor) -> tuple[str, int]:
        if tensor.name in self.states:
            return "state", self.states[tensor.name]
        return "arena", self.plan.offsets[tensor.name]

    def describe(self, tensor: Tensor) -> str:
        """For comments: where the tensor is, in words."""
        if tensor.is_constant:
            return "flash"
        if tensor.name in self.states:
            return f"state {self.states[tensor.name]}"
        offset = self.plan.offsets[tensor.name]
        return f"{offset}..{offset + tensor.bytes}"


def layer_codes(
    model: str, graph: Graph, plan: Plan, selected: Sequence[Selected], target: Target
) -> list[LayerCode]:
    """Code for every layer that does any work; layers that only rename memory are left out."""
    names = layer_names(model, [s.layer for s in selected])
    addresses = Addresses(model, graph, plan)
    codes = []
    for step, (chosen, name) in enumerate(zip(selected, names, strict=True)):
        if not _is_free(chosen.layer, addresses):
            codes.append(_code(step, name, chosen, addresses, target))
    return codes


def _is_free(layer: Layer, addresses: Addresses) -> bool:
    """Whether sharing memory has already done all that the layer does."""
    views = {view.inner: view for view in layer.op.views(layer)}
    return bool(views) and all(y.name in views and addresses.same(y, layer.input(0)) for y in layer.outputs)


def _code(step: int, name: str, chosen: Selected, addresses: Addresses, target: Target) -> LayerCode:
    layer = chosen.layer
    sheet = Sheet(layer, target, name)
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
    declarations = ", ".join(d for d, _ in parameters) or "void"
    arguments = ", ".join(a for _, a in parameters)
    return LayerCode(
        comment=_comment(step, chosen, addresses),
        signature=c.wrap(f"static void {name}({declarations})", ""),
        call=c.wrap(f"{name}({arguments});", c.TAB),
        body=sheet.lines,
        tables=sheet.tables,
        records=sheet.records,
        headers=sheet.headers,
    )


def _comment(step: int, chosen: Selected, addresses: Addresses) -> list[str]:
    """Index, operator, original name, shapes, arena offsets, MACs; at most a few lines."""
    layer = chosen.layer
    operands = [t for t in layer.inputs if t is not None and not t.is_constant]
    macs = layer.op.macs(layer)
    facts = [
        f"{step}: {layer.op.label()} {c.printable(layer.name)!r}",
        f"{' + '.join(shape_text(t.shape) for t in operands)} -> "
        f"{' + '.join(shape_text(t.shape) for t in layer.outputs)}",
        f"arena {', '.join(addresses.describe(t) for t in operands) or 'nothing'} -> "
        f"{', '.join(addresses.describe(t) for t in layer.outputs)}",
        f"{chosen.kernel.name}" + (f", {macs:,} MACs" if macs else ""),
    ]
    return c.wrap(" | ".join(facts), " * ", "  ")
