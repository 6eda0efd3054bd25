# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""EthosU: operators that an Arm Ethos-U NPU computes together. ``npu/offload.py`` creates it.

Its meaning in numpy is that of the operators it replaces. In C it is a call of the NPU's driver with the
commands and constants that Vela made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Graph, Layer, Op, Tensor, TensorType, given
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels

ALIGNMENT = 16  # of everything whose address the driver hands to the NPU


@dataclass(frozen=True)
class Slot:
    """Where a tensor is in the NPU's region of inputs or outputs."""

    offset: int


def as_inside(layer: Layer[Any]) -> bool:
    """The inputs have the types and shapes of the operators' own."""
    wanted = [layer.op.inner.tensors[name] for name in layer.op.inner.inputs]
    return len(wanted) == len(layer.inputs) and all(
        x is not None and (x.shape, x.dtype) == (own.shape, own.dtype)
        for x, own in zip(layer.inputs, wanted, strict=True)
    )


@dataclass(frozen=True)
class EthosU(Op):
    """Inputs and outputs are those of ``inner``, in its order.

    The NPU addresses all inputs from one base and all outputs from another. A single tensor is used where it
    is. Several are copied into one block of scratch memory, and so is one whose place the planner does not
    choose (``pack_inputs``, ``pack_outputs``).
    """

    folds = False
    operands = (as_inside,)
    accelerator: str
    commands: bytes = field(repr=False)
    weights: bytes = field(repr=False)
    scratch_bytes: int
    input_slots: tuple[Slot, ...]
    output_slots: tuple[Slot, ...]
    operators: tuple[str, ...]  # what it replaces: the types of the file's operators
    cycles: int  # of one run, as Vela estimates them
    inner: Graph = field(compare=False, repr=False)
    pack_inputs: bool = False
    pack_outputs: bool = False

    def attributes(self) -> dict[str, Any]:
        return {
            "accelerator": self.accelerator,
            "operators": ", ".join(self.operators),
            "commands": len(self.commands),
            "weights": len(self.weights),
            "scratch": self.scratch_bytes,
        }

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return tuple(self.inner.tensors[name].type for name in self.inner.outputs)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        sample = {name: given(inputs, i) for i, name in enumerate(self.inner.inputs)}
        (values,) = interpret(self.inner, [sample])
        return tuple(values[name] for name in self.inner.outputs)

    def macs(self, layer: Layer) -> int:
        return sum(part.op.macs(part) for part in self.inner.layers())

    def input_block(self, layer: Layer) -> int:
        """Bytes of scratch memory for copies of the inputs."""
        return _block(self.input_slots, layer.inputs) if self.pack_inputs else 0

    def output_block(self, layer: Layer) -> int:
        return _block(self.output_slots, layer.outputs) if self.pack_outputs else 0


def _block(slots: Sequence[Slot], tensors: Sequence[Tensor | None]) -> int:
    ends = [slot.offset + t.bytes for slot, t in zip(slots, tensors, strict=True) if t is not None]
    return _rounded(max(ends, default=0))


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class EthosUKernel(Kernel[EthosU]):
    """A call of the driver through <tinyml/ethos_u.h>."""

    name = "ethos_u"
    library = Library.NPU
    scratch_alignment = ALIGNMENT

    def alignments(self, layer: Layer[EthosU]) -> Mapping[str, int]:
        used = [] if layer.op.pack_inputs else [t for t in layer.inputs if t is not None]
        used += [] if layer.op.pack_outputs else layer.outputs
        return dict.fromkeys((t.name for t in used), ALIGNMENT)

    def scratch_bytes(self, layer: Layer[EthosU], target: Target) -> int:
        op = layer.op
        return _rounded(op.scratch_bytes) + op.input_block(layer) + op.output_block(layer)

    def emit(self, layer: Layer[EthosU], sheet: Sheet) -> None:
        op = layer.op
        sheet.include("<tinyml/ethos_u.h>")
        words = np.frombuffer(op.commands, "<u4").astype(np.uint32)
        commands = sheet.table("commands", words, ALIGNMENT)
        weights = sheet.table("weights", np.frombuffer(op.weights, np.uint8), ALIGNMENT)
        inputs_at = _rounded(op.scratch_bytes)
        outputs_at = inputs_at + op.input_block(layer)
        whole = {
            ".commands": commands,
            ".weights": weights,
            ".commands_bytes": len(op.commands),
            ".weights_bytes": len(op.weights),
            ".scratch_bytes": op.scratch_bytes,
            ".input_bytes": op.input_block(layer) or layer.input(0).bytes,
            ".output_bytes": op.output_block(layer) or layer.output.bytes,
        }
        part = sheet.record("struct tinyml_ethos_u", "part", whole)
        sheet.may_fail = True
        scratch = sheet.scratch if self.scratch_bytes(layer, sheet.target) else "NULL"
        if op.pack_inputs or op.pack_outputs:
            sheet.include("<string.h>")
            sheet.line(f"uint8_t *memory = {scratch};")
        if op.pack_inputs:
            source = f"&memory[{inputs_at}]"
            sheet.line()
            for i, slot in enumerate(op.input_slots):
                sheet.line(
                    f"memcpy(&memory[{inputs_at + slot.offset}], {sheet.x(i)}, {layer.input(i).bytes});"
                )
        else:
            source = sheet.x(0)
        result = f"&memory[{outputs_at}]" if op.pack_outputs else sheet.y(0)
        call = f"tinyml_ethos_u_run(&{part}, {source}, {result}, {scratch})"
        if not op.pack_outputs:
            sheet.line(f"return {call};")
            return
        sheet.line(f"int status = {call};")
        sheet.line()
        for i, (slot, y) in enumerate(zip(op.output_slots, layer.outputs, strict=True)):
            sheet.line(f"memcpy({sheet.y(i)}, &memory[{outputs_at + slot.offset}], {y.bytes});")
        sheet.line("return status;")


def packed(graph: Graph, io_outside: bool) -> Graph:
    """The graph with copies where the NPU would use memory whose alignment the planner does not choose."""
    states = {state.tensor for state in graph.states}
    foreign_inputs = states | ({*graph.inputs} if io_outside else set())
    foreign_outputs = {*graph.outputs} if io_outside else set()
    nodes = []
    for node in graph.nodes:
        if isinstance(node.op, EthosU):
            op = replace(
                node.op,
                pack_inputs=node.op.pack_inputs or bool(foreign_inputs & {*node.inputs}),
                pack_outputs=node.op.pack_outputs or bool(foreign_outputs & {*node.outputs}),
            )
            node = replace(node, op=op)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


register_kernels(EthosU, EthosUKernel())
